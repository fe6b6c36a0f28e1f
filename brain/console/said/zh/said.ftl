### What the API refuses, in Chinese. The ids are made of the English, which stands in the code (agent/shared/words.py).

a-command-needs-the-operator-s-name = 命令需要操作者的姓名
a-hold-cannot-last-s-s = 暂停不能持续 { $s } 秒
a-hold-needs-a-scope-and-a-why = 暂停需要范围和原因
a-note-needs-an-incident-and-a-text = 备注需要故障和文字
a-token-is-needed = 需要令牌
disrupts-a-job = 影响一个作业
disrupts-nothing = 不影响任何作业
disrupts-the-fabric = 影响整个网络
disrupts-the-node = 影响该节点
id-has-no-evidence-bundle-see-gpuward-explain = { $id } 没有证据包：见 `gpuward explain`
id-has-no-run-it-is-state = { $id } 没有运行：其状态为 { $state }
id-has-no-run-there-is-no-runbook-for-it = { $id } 没有运行：没有适用于它的修复手册
id-is-ambiguous-it-may-be-several = { $id } 不明确：可能是 { $several }
id-waits-for-no-approval-it-is-state = { $id } 不在等待批准：其状态为 { $state }
it-is-under-way-there-other = 那里正在进行：{ $other }
no-card-serial = 没有卡 { $serial }
no-incident-id = 没有故障 { $id }
no-kind-name-have = 没有 { $kind } { $name }{ $have }
no-node-name = 没有节点 { $name }
no-node-name-have = 没有节点 { $name }{ $have }
no-run-id = 没有运行 { $id }
no-run-of-that-id-is-under-way = 没有该编号的运行正在进行
no-run-of-that-id-waits-for-an-approval = 没有该编号的运行在等待批准
no-runbook-name-have = 没有修复手册 { $name }{ $have }
no-scope-scope-a-kind-is-named-kind-node-name = 没有范围 { $scope }：{ $kind } 应写作 { $kind }/{ $node }/名称
no-scope-scope-did-you-mean-node-name = 没有范围 { $scope }：您是指 node/{ $name } 吗？
no-such-kind-name = 没有这样的 { $kind }：{ $name }
no-such-open-incident = 没有这样的未结故障
no-such-open-incident-or-alert-group = 没有这样的未结故障或告警组
runbook-name-cannot-be-started-by-request-have-known = 修复手册 { $name } 不能由人启动（可选：{ $known }）
runbook-name-is-started-on-a-kind-not-on-scope = 修复手册 { $name } 应在 { $kind } 上启动，而不是在 { $scope } 上
s-after-rungs-869c522b = （在 { $rungs } 之后）
s-an-incident-inc-or-its-beginning-a-page-inc-0c094e8f =
    故障（inc-… 或其开头）、呼叫（inc-….p1）、运行（inc-….r1）、步骤或节点的命令（inc-….r1.s1.a1）、告警组（grp-…）、
    暂停（hold-…）、操作者的命令（s:…）、事件或记录的编号
s-did-you-mean-names-fcf13e86 = ：您是指 { $names } 吗？
s-have-names-e17f7694 = （可选：{ $names }）
s-id-is-at-present-now-not-at-shown-look-2a966d2d = { $id } 现在位于 { $present }，而不是 { $shown }：批准之前请再看一次
s-id-is-not-as-it-was-shown-why-look-7327c433 = { $id } 与所显示的不同：{ $why }；批准之前请再看一次
s-id-settles-for-s-s-more-then-its-run-accc8d3b = { $id } 还要观察 { $s } 秒：随后开始运行，如需批准会提出请求
s-n-holds-are-on-name-name-one-by-its-f1148937 = { $name } 上有 { $n } 个暂停，请用编号指明一个：{ $each }
s-name-is-not-in-the-object-store-not-sent-974680a5 =
    { $name } 不在对象存储中：尚未发送、太旧，或者该节点是模拟节点，不产生证据包；它可能仍在 { $node } 上，在 agent 的 data_dir 的 `evidence` 文件夹里
s-no-incident-id-and-nothing-else-of-that-id-4f3e7c12 = 没有故障 { $id }，也没有其他东西使用该编号：explain 接受{ $have }
s-no-scope-scope-want-all-or-type-name-such-fec2cdcb = 没有范围 { $scope }：应为 { $all } 或 类型/名称，例如 { $forms }（类型：{ $types }）
s-no-scope-scope-which-nodes-a-job-runs-on-4373b845 = 没有范围 { $scope }：作业所在的节点会变化，请指明节点
s-no-scope-scope-which-nodes-have-a-version-changes-da018af9 = 没有范围 { $scope }：使用某版本的节点会变化，请指明节点
s-none-is-known-013defc9 = ：一个也不知道
s-what-who-started-the-brain-has-one-by-itself-2dbc5c94 =
    { $what }：启动 brain 的人自动拥有令牌，其他人向管理员索取（`gpuward token create 姓名`），并用 --token-file 或 GPUWARD_TOKEN_FILE 指明令牌文件
there-is-no-hold-on-name = { $name } 上没有暂停
this-token-is-wrong-revoked-or-expired = 该令牌错误、已吊销或已过期
too-many-joins-with-wrong-tokens = 使用错误令牌加入的次数过多
too-many-logins = 登录次数过多
too-many-requests = 请求过多
too-many-wrong-credentials = 错误凭证过多
what-try-again-in-s-s = { $what }：请在 { $s } 秒后重试
who-took-it-before-nobody-is-called-again = { $who } 已先接手：不再呼叫任何人
