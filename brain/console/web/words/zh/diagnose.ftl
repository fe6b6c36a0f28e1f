### 粘贴的内核日志及其诊断结论。

diagnose-what = 粘贴内核日志或拖入文件：哪里有问题、有多大把握、该怎么办、gpuward 会执行什么。不会执行任何操作，也不保留任何内容。
diagnose-log = 内核日志（dmesg、journalctl -k、/dev/kmsg）
diagnose-file = 或选择文件（支持 .gz）
diagnose-driver = NVIDIA 驱动版本（日志中没有时填写）
diagnose-cut = 日志过长：已略去开头 { $n } 行。`gpuward diagnose FILE` 可读取全部内容。
diagnose-busy = 正在读取日志…
diagnose-clear = 清空
diagnose-unreadable = 无法读取 { $name }：{ $why }
verb-diagnose = 诊断
log-in-to-diagnose = 登录后可诊断
verdict-incidents = 发现 { $n } 个故障
verdict-well = 未发现问题
verdict-no-rule = 没有故障：以下内容没有规则需要处理
verdict-unknown = 无法确认正常
verdict-no-all-clear = 无法确认正常：
verdict-other = 其他有含义但没有规则处理的行
verdict-counts = 共读取 { $n } 行，其中 { $known } 行含义已知。
verdict-unread = 另有 { $n } 行无法读取。
verdict-sure = 把握程度：
verdict-explains = 它可解释：
verdict-would-run = gpuward 会执行
verdict-would-page = gpuward 不会执行任何操作，只会告警。
verdict-over = 持续 { $span }：日志表明已经结束。
verdict-booted = 最后的迹象出现在机器重新启动之前（{ $line }）；此后没有任何一行说明现状。
verdict-silent = 最后的迹象距日志末尾 { $span }；没有任何一行表明已经结束。
verdict-line = 第 { $n } 行
