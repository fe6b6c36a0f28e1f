### 诊断所说的句子。英文见 ../english.json（docs/sentences.py）。

a-part-of-this-message-is-missing = 此消息缺少一部分
a-program-says-what-the-kernel-may-have-said = 某个程序说出了内核可能说过的话
fairly-lines-lines-of-one-kind-say-so = 较大：{ $lines } 行同类的记录都这样说
gpuward-reads-what-dmesg-journalctl-k-and-dev-kmsg-print = gpuward 可读取 dmesg、journalctl -k 和 /dev/kmsg 的输出。
it-holds-no-lines-did-dmesg-need-more-rights-sudo = 其中没有任何行。dmesg 是否需要更高权限（sudo）？
its-form-is-not-known = 其格式未知
its-line-looks-like-no-kernel-line = 其唯一一行不像内核日志
left-out = 略过
line-first-foreign-foreign-example = 第 { $first_foreign } 行：{ $foreign_example }
line-looks-like-no-kernel-line = 行不像内核日志
lines-lines-like-this-to-line-lines2 = （到第 { $lines2 } 行共 { $lines } 行类似）
lines-look-like-no-kernel-lines = 行不像内核日志
none-of-many-looks-like-a-kernel-line = { $many }都不像内核日志
one-line-says-so-nothing-else-confirms-it = 只有一行这样说，没有其他佐证
only-told-of-many-look-like-kernel-lines-reads = { $many }中只有 { $told } 行像内核日志。{ $reads }
s-left-out-3da3f938 = ：略过，
s-the-log-ends-within-line-number-which-may-go-c469af2b = 日志在第 { $number } 行中断，该行可能未完：{ $shortened }。
s-the-words-of-a-kernel-line-stand-behind-others-c0d4cc2d = 内核日志行的内容出现在其他文字之后，来源不明
s-unread-of-lines-lines-could-not-be-read-line-a1bd8428 = { $lines } 行中有 { $unread } 行无法读取（第 { $first } 行：{ $why }：{ $example }）。{ $reads }
the-lines-of-this-message-before-it-are-missing = 此消息中它之前的行缺失
the-lines-of-this-message-behind-it-are-missing = 此消息中它之后的行缺失
the-log-ends-within-this-line = 日志在此行中断
very-kinds-different-signs-agree-in-lines = 很大：{ $kinds } 种不同的迹象一致，共 { $lines }
very-nodes-nodes-show-it-at-once = 很大：{ $nodes } 个节点同时出现
what-is-open-either-out = { $what } 未结：{ $either }{ $out }
which-process-was-killed-is-not-said = 没有说明终止了哪个进程
