### What `gpuward up` says, in Chinese.

stopped-gpuward-up-data-data-goes-on-from-here = 已停止；`gpuward up --data { $data }` 会从这里继续
what-else-can-break = 还有什么会出故障
stopping-ctrl-c-again-at-once = 正在停止（再按 Ctrl-C：立即停止）……
this-machine-as-node-observed-never-changed = 本机，名为 { $node }：只观察，从不改动
s-data-strerror-give-a-folder-that-you-may-write-2cb48736 = { $data }：{ $strerror }：请用 --data 给出一个您可写入的文件夹
s-port-wanted-of-127-0-0-1-strerror-stop-5b7114e4 = 127.0.0.1 的端口 { $wanted }：{ $strerror }：请停掉占用它的程序，或用 { $option } 另给一个
s-data-is-in-use-by-another-gpuward-up-pid-8854b50b = { $data } 正被另一个 `gpuward up`（pid { $pid }）使用：请停掉它，或用 --data 另给一个文件夹
everything-that-is-kept = 所有要保留的数据
no-heartbeat-yet-from-nodes = 尚未收到心跳：{ $nodes }
s-still-waiting-for-the-brain-to-lead-with-rules-9af3a8ae = 仍在等待 brain 带着生效的规则成为主；见 { $log }
the-pages-that-people-would-get = 人们会收到的告警
a-simulated-gpu-falls-off-the-bus = 一块模拟的 GPU 从总线上掉线
s-more-than-lines-lines-or-characters-characters-of-it-c041dd38 = 其中可能有意义的超过 { $lines } 行或 { $characters } 个字符：请只给出您想了解的部分，例如用 `tail -n 1000000`
s-gpuward-is-up-after-took-s-s-ctrl-c-6da9cb64 = gpuward 在 { $took_s } 秒后就绪。按 Ctrl-C 停止。
s-a-part-of-gpuward-ended-by-itself-so-all-6bb917a7 = gpuward 的一个部分自行结束，因此全部停止：{ $part }
s-try-in-another-terminal-2985abde = 请在另一个终端中试试：
what-is-open-then-gpuward-explain-id = 有哪些未结束的故障；然后 `gpuward explain ID`
which-nodes-are-there = 有哪些节点
what-happens-as-it-happens = 正在发生什么
s-warnings-of-the-agent-about-node-e0168516 = agent 关于 { $node } 的警告：
first-last-simulated-and-healed = { $first } .. { $last }：模拟节点，会被修复
