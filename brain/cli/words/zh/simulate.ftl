### `gpuward simulate --runbook`: every way in which a runbook can go.

s-fault-is-for-runbook-which-one-shall-be-played-b3f2b874 = --fault 与 --runbook 一起使用：要用哪个修复手册来应对它？
s-in-place-of-a-month-every-way-in-which-1a61d841 = 不模拟一个月，而是把此修复手册可能的每一种走法列成一棵树。退出状态 1：有一种走法既没有呼叫人，也没有修复。
s-with-runbook-the-fault-that-it-is-played-against-1d04492d = 与 --runbook 一起使用：要应对的故障；默认：第一个会触发它的故障。
must-not-be-verdict-way = 不应出现：{ $verdict }：{ $way }
the-longest-takes-time = 最长的需要 { $time }。
a-person-is-told = 已通知人
approved = 已获批准
as-at-number = 同第 { $number } 步
attempt-number = 第 { $number } 次尝试
closed-and-the-fault-is-there = 已关闭，但故障仍在
closed-and-the-node-is-still-out-of-service = 已关闭，但节点仍未恢复服务
done-and-the-fault-stays = 已执行，但故障仍在
fails = 失败
healed = 已修复
heals = 修复
heals-for-nine-minutes = 修复了九分钟
is-refused = 被拒绝
it-goes-round-for-ever-and-nobody-is-told = 永远循环，且没有通知任何人
it-goes-round-and-a-person-is-told = 循环往复，并已通知人
jobs-on-other-nodes-are-disrupted-too = 其他节点上的作业也会受影响
jobs-on-the-node-are-disrupted = 该节点上的作业会受影响
s-jobs-on-the-node-protected-jobs-holds-maintenance-windows-da0c1046 = 节点上的作业、受保护的作业、暂停、维护窗口、预算：每一步都立即放行
jobs-on-this-part-are-disrupted = 使用该部件的作业会受影响
listed-only-as-its-rule-wants-it = 仅列出，正如其规则所定
never-answers = 一直没有回应
nobody-is-told-and-nothing-is-healed = 没有通知任何人，也没有修复
nothing-is-disrupted = 不影响任何作业
on-the-way-back = 恢复服务途中
the-brain-dies-in-it = 执行时 brain 崩溃
the-node-dies-in-it = 执行时节点宕机
the-node-is-out-of-service = 节点未在服务中
s-people-who-mend-the-fault-meanwhile-what-a-drain-b23266fd = 其间由人修好故障：这正是排空所等待的
s-the-time-that-passed-where-the-same-step-is-4d60062a = 已经过的时间：在相同情况下较早或较晚到达的同一步只显示一次
s-runbooks-goes-with-rules-runbooks-are-read-with-the-f95c6f05 = --runbooks 与 --rules 一起使用：修复手册要与触发它们的规则一起读取
two-ends-at-once-and-faults-of-other-parts-meanwhile = 两种结果同时出现，以及其间其他部件的故障
s-whoever-is-asked-for-an-approval-gives-it-within-694e92bd = 被请求批准的人在一分钟内批准
works = 成功
runbook-against-cause = { $runbook } 应对 { $cause }
runbook-run-number = { $runbook }，第 { $number } 次运行
runbook-started-by-a-person = { $runbook }，由人启动

### Scenarios.

expected-because-why = 预期如此，因为：{ $why }
right-of-all-as-expected = { $all }中有 { $right } 个符合预期
s-of-the-many-ways-of-this-ladder-in-how-e1ce6f60 = 此手册的走法很多，以下不加区分：故障在多少秒后复发、那时节点是否离线、补救措施还引出了什么；只在这些方面不同的走法只显示一次，其余走法的坏结局不会被看到
