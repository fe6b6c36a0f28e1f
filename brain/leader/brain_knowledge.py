"""What is behind the troubles of a brain itself, and what to do: no rule is about them."""

from collections.abc import Mapping

from brain.core.pack.spec import Knowledge, Text

KNOWN: Mapping[str, Knowledge] = {
    "brain_rules": Knowledge(
        cause=Text(
            en="The folder of the rules or runbooks is missing or cannot be read, or a file in it is wrong.",
            zh="规则或运行手册目录缺失、无法读取，或其中有文件出错。",
        ),
        todo=Text(
            en="Until then no fault is judged. `gpuward check --rules FOLDER --runbooks FOLDER` names file, line and key; the "
            "brain reads the files again by itself.",
            zh="在此之前不会判断任何故障。`gpuward check --rules 目录 --runbooks 目录` 会指出文件、行和键；"
            "修复后大脑会自动重新读取。",
        ),
    ),
    "brain_disconnected": Knowledge(
        cause=Text(
            en="NATS does not run, has no space, or cannot be reached from this brain's machine.",
            zh="NATS 未运行、磁盘已满，或从本机无法访问。",
        ),
        todo=Text(
            en="Look at the NATS server and the network between it and this brain. Agents keep what they have to say on disk.",
            zh="检查 NATS 服务器及其与大脑之间的网络。代理会把事件保存在本地磁盘。",
        ),
    ),
    "nobody_leads": Knowledge(
        cause=Text(
            en="The log takes or delivers nothing, most often as its disk is full; or the brains have stopped acting.",
            zh="日志无法写入或读取，多为磁盘已满；或大脑已停止动作。",
        ),
        todo=Text(
            en="`gpuward status` on each brain's machine; make room on the disk of NATS; restart a brain that has stopped acting "
            "when you have read why.",
            zh="在每台大脑主机上执行 `gpuward status`；为 NATS 腾出磁盘空间；了解原因后重启已停止动作的大脑。",
        ),
    ),
    "certificate_ends": Knowledge(
        cause=Text(
            en="The cell's certificate ends, and the brain cannot make another: `ca.key` was moved away or cannot be read.",
            zh="本单元的证书即将到期，而大脑无法签发新证书：`ca.key` 已被移走或无法读取。",
        ),
        todo=Text(
            en="Put `ca.key` back in the folder `cell` of the brain's data and say `gpuward cell rotate server`; then move it "
            "away again. `gpuward cell show` says when certificates end.",
            zh="将 `ca.key` 放回大脑数据目录下的 `cell` 文件夹，执行 `gpuward cell rotate server`，然后可再次移走。"
            "`gpuward cell show` 会显示证书到期时间。",
        ),
    ),
}
OTHERS = Knowledge(
    cause=Text(en="This brain itself is in trouble, not a node.", zh="出问题的是大脑本身，而非节点。"),
    todo=Text(
        en="`gpuward status` on the brain's machine, and the log of its service (journalctl -u gpuward).",
        zh="在大脑主机上执行 `gpuward status`，并查看其服务日志（journalctl -u gpuward）。",
    ),
)
