### 在页面中打开的证据包。

evidence-of = 来源节点
evidence-download = 下载整个证据包
evidence-cut = 未能列出全部内容：
evidence-left-out = 其中 { $n } 个成员是链接、设备等特殊文件，已略过。
evidence-files = 证据包中的文件
evidence-find = 查找文件
evidence-choose = 选择一个文件即可在此查看。
evidence-empty = 其中没有文件。
evidence-more = 另有 { $n } 个：请缩小名称范围
evidence-text = 文件内容
evidence-binary = 这不是文本文件：请下载后查看。
evidence-first = 仅显示前 { $shown }，共 { $all }。下载可得全部内容。
evidence-no-text = 非文本
evidence-save = 下载
evidence-count = { $n } 个文件
