### `gpuward simulate --sweep` and `--learn`: what if a setting were another one; a site's own profile.

s-runbook-plays-one-runbook-on-a-node-or-a-9502cc19 = --runbook 只在一个或几个节点上演练一个修复手册：请去掉 NAME 以及用于模拟一个月的选项
seeds-is-for-sweep-key-v1-v2 = --seeds 与 --sweep 一起使用：KEY=V1,V2,...
sweep-wants-key-v1-v2-text-is-none = --sweep 要写成 KEY=V1,V2,...：{ $text } 不是
sweep-key-a-value-stands-there-twice = --sweep { $key }：有一个值写了两次
sweep-key-value-cannot-stand-there-want-want = --sweep { $key }：{ $value } 不能用在这里（应为：{ $want }）
sweep-there-is-no-key-key-have-keys = --sweep：没有键 { $key }（可用：{ $keys }）
s-means-over-the-seeds-from-first-on-with-95-5ebb9e91 = 从 { $first } 起各种子的平均值，附 95 % 区间。每个值都遇到同样的故障和同样的运气；差值按种子逐一计算。
s-the-gates-beside-without-cost-node-hours-cost-low-4aa4c2eb = 各道关卡与 { $without } 相比：{ $cost } 节点小时（{ $cost_low } 至 { $cost_high }），并阻止了 { $harm } 次（{ $harm_low } 至 { $harm_high }）会造成损害的动作。
s-what-if-gpuward-s-month-with-each-of-these-3363f154 = 假如：在同样的故障上，用这些值中的每一个模拟 gpuward 的一个月，遍历 --seeds 个种子。KEY 写错时会列出所有可用的键；gates=on,off 显示安全关卡的代价以及它们阻止的损害。
s-with-sweep-over-so-many-seeds-from-seed-on-08e0a9a6 = 与 --sweep 一起使用：从 --seed 起的种子数；默认：5。
a-number = 一个数
s-a-scenario-says-itself-what-happens-on-which-nodes-892348eb = 场景自己写明在哪些节点上发生什么：请去掉用于模拟一个月的选项
actions-that-did-harm = 造成损害的动作
actions-that-did-not-help = 没有帮助的动作
node-hours-lost = 损失的节点小时
node-hours-beside-value = 节点小时，与 { $value } 相比
s-title-nodes-nodes-days-days-seeds-seeds-what-if-fde516ed = { $title }：{ $nodes } 个节点，{ $days } 天，{ $seeds } 个种子：假如 { $key } 是……
s-learn-prints-a-profile-and-plays-nothing-leave-html-519a8821 = --learn 输出一个配置，不做模拟：请去掉 --html、--sweep 和 --log
s-prints-the-profile-of-your-own-fleet-as-yaml-af60e32b = 以 YAML 输出您自己机群的配置：什么多久坏一次、各节点有多不均匀，依据 `gpuward log export` 的文件，或读模型（要加 --nodes）。其中太少见的取自 NAME，并作标记。
s-writes-gpuward-s-month-as-a-log-into-this-a360038e = 把 gpuward 的这个月作为日志写入此文件，与 `gpuward log export` 相同：用于回测和 --learn。
s-path-a-read-model-does-not-say-how-many-da7dcf51 = { $path }：读模型没有写明有多少节点：请加上 --nodes N
s-path-has-less-than-half-a-day-nothing-can-0098c860 = { $path }：不足半天：无法从中学到什么
s-path-is-neither-a-file-of-gpuward-log-export-64472701 = { $path }：既不是 `gpuward log export` 的文件，也不是读模型（history.db）
