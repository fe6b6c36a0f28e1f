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
            "修复后 brain 会自动重新读取。",
        ),
    ),
    "brain_disconnected": Knowledge(
        cause=Text(
            en="NATS does not run, has no space, or cannot be reached from this brain's machine.",
            zh="NATS 未运行、磁盘已满，或从本机无法访问。",
        ),
        todo=Text(
            en="Look at the NATS server and the network between it and this brain. Agents keep what they have to say on disk.",
            zh="检查 NATS 服务器及其与 brain 之间的网络。agent 会把事件保存在本地磁盘。",
        ),
    ),
    "nobody_leads": Knowledge(
        cause=Text(
            en="The log takes or delivers nothing, most often as its disk is full; or the brains have stopped acting.",
            zh="日志无法写入或读取，多为磁盘已满；或 brain 已停止动作。",
        ),
        todo=Text(
            en="`gpuward status` on each brain's machine; make room on the disk of NATS; restart a brain that has stopped acting "
            "when you have read why.",
            zh="在每台 brain 主机上执行 `gpuward status`；为 NATS 腾出磁盘空间；了解原因后重启已停止动作的 brain。",
        ),
    ),
    "certificate_ends": Knowledge(
        cause=Text(
            en="The cell's certificate ends, and the brain cannot make another: `ca.key` was moved away or cannot be read.",
            zh="本单元的证书即将到期，而 brain 无法签发新证书：`ca.key` 已被移走或无法读取。",
        ),
        todo=Text(
            en="Put `ca.key` back in the folder `cell` of the brain's data and say `gpuward cell rotate server`; then move it "
            "away again. `gpuward cell show` says when certificates end.",
            zh="将 `ca.key` 放回 brain 数据目录下的 `cell` 文件夹，执行 `gpuward cell rotate server`，然后可再次移走。"
            "`gpuward cell show` 会显示证书到期时间。",
        ),
    ),
    "registry_unreadable": Knowledge(
        cause=Text(
            en="`registry.json` in the folder `cell` of the brain's data is damaged or cannot be read.",
            zh="brain 数据目录下 `cell` 文件夹中的 `registry.json` 已损坏或无法读取。",
        ),
        todo=Text(
            en="The nodes that were let in stay; nobody joins and nobody is revoked until it is read. Correct it, or put it back "
            "from your backup; the brain reads it again by itself. Do not remove it: then all nodes must join anew.",
            zh="已接入的节点不受影响；在恢复之前无法加入或吊销节点。请修正该文件或从备份恢复，brain 会自动重新读取。"
            "请勿删除：否则所有节点都必须重新加入。",
        ),
    ),
    "trust_unreadable": Knowledge(
        cause=Text(
            en="`trust.json` in the folder `cell` of the brain's data is damaged or cannot be read.",
            zh="brain 数据目录下 `cell` 文件夹中的 `trust.json` 已损坏或无法读取。",
        ),
        todo=Text(
            en="No key is rotated until it is read. Put it back from your backup, made after the last rotation.",
            zh="在恢复之前无法轮换密钥。请从最近一次轮换之后的备份中恢复。",
        ),
    ),
    "tokens_unreadable": Knowledge(
        cause=Text(
            en="The file of people's tokens (`tokens.json`, or `console.tokens_file`) is damaged or cannot be read.",
            zh="用户令牌文件（`tokens.json` 或 `console.tokens_file`）已损坏或无法读取。",
        ),
        todo=Text(
            en="Tokens that were good stay good, and none is made or revoked, until it is read; after a restart none counts. "
            "Correct it, or put it back from your backup; if there is none, remove it: everybody needs a new token.",
            zh="恢复之前，原有令牌仍然有效，但无法创建或吊销令牌；brain 重启后所有令牌都将失效。请修正或从备份恢复；"
            "若没有备份，请删除该文件，所有人都需要新令牌。",
        ),
    ),
    "people_unreadable": Knowledge(
        cause=Text(
            en="brain.toml has an error since it was last changed: who may come in is as it was before.",
            zh="brain.toml 自上次修改后存在错误：访问权限仍与修改前相同。",
        ),
        todo=Text(
            en="Correct it (`gpuward run --check --config FILE` names line and key): whoever was taken out of it still comes in, "
            "and a brain that is restarted does not start.",
            zh="请修正（`gpuward run --check --config FILE` 会指出行号和键名）：已被移除的人员仍可登录，"
            "且 brain 重启后将无法启动。",
        ),
    ),
    "log_jumped": Knowledge(
        cause=Text(
            en="The clock of the machine on which NATS runs was set ahead, or was behind and has been corrected.",
            zh="NATS 所在机器的时钟被调快，或此前落后、现已校正。",
        ),
        todo=Text(
            en="Hold again what must be held (`gpuward status` lists what is left), and look at what keeps that machine's clock "
            "right (`gpuward doctor`).",
            zh="请重新设置仍需要的暂停（hold，`gpuward status` 列出剩余项），并检查该机器的时间同步（`gpuward doctor`）。",
        ),
    ),
    "log_time": Knowledge(
        cause=Text(
            en="The clock of the machine on which NATS runs was ahead, and was set back.",
            zh="NATS 所在机器的时钟曾经超前，后被调回。",
        ),
        todo=Text(
            en="Until its clock is what it was, the log's time goes on at half the speed, so that what waits comes to its end. "
            "Look at what keeps that machine's clock right (`gpuward doctor`), and at holds and approvals, which may have ended "
            "early.",
            zh="在时钟追上之前，日志时间以一半速度前进，因此所有等待最终都会结束。请检查该机器的时间同步（`gpuward doctor`），"
            "以及可能提前结束的暂停（hold）和批准。",
        ),
    ),
    "keys_behind": Knowledge(
        cause=Text(
            en="The keys of this brain are older than those that nodes trust: they were put back from a backup of before a "
            "rotation, or copied from a brain that had not rotated yet. Such nodes refuse every command.",
            zh="本 brain 的密钥比节点所信任的更旧：它们来自轮换之前的备份，或复制自尚未轮换的 brain。这些节点会拒绝所有命令。",
        ),
        todo=Text(
            en="Put back the newest `signing.key`, `signing.key.pub` and folder `cell` that you have, and restart the brain. "
            "If there are none: `gpuward cell rotate signing --compromised` while the brain runs, and every node joins again.",
            zh="恢复最新的 `signing.key`、`signing.key.pub` 和 `cell` 文件夹，然后重启 brain。若没有，请在 brain 运行时执行 "
            "`gpuward cell rotate signing --compromised`，所有节点重新加入。",
        ),
    ),
    "two_keys": Knowledge(
        cause=Text(
            en="Two brains of the cell have each made a key to sign commands with: one by hand, say, or for a log that was "
            "deleted since. A node obeys one of them.",
            zh="本单元的两个 brain 各自生成了命令签名密钥：例如其中一个是手工生成的，或对应的日志后来被删除。"
            "节点只服从其中一个。",
        ),
        todo=Text(
            en="Find out which key nodes obey (`trusted_keys` of an agent's configuration), and bring that one to the other "
            "brain: `gpuward cell share`, `gpuward cell take`. The page names both.",
            zh="先确认节点服从哪个密钥（agent 配置中的 `trusted_keys`），再把它带到另一个 brain："
            "`gpuward cell share`、`gpuward cell take`。告警中列出了两个密钥。",
        ),
    ),
    "scheduler_rights": Knowledge(
        cause=Text(
            en="The account by which this brain comes to a scheduler lacks rights there, is unknown, or its token has ended.",
            zh="本 brain 访问调度器所用的账户缺少权限、不被识别，或其令牌已过期。",
        ),
        todo=Text(
            en="Give it these rights (docs/kubernetes.md, docs/slurm.md). A runbook that needs one of them fails at that step. "
            "The brain looks again within ten minutes; `gpuward doctor` does at once.",
            zh="请授予这些权限（见 docs/kubernetes.md、docs/slurm.md）。需要该权限的运行手册会在相应步骤失败。"
            "brain 会在十分钟内重新检查；`gpuward doctor` 可立即检查。",
        ),
    ),
    "brain_disk": Knowledge(
        cause=Text(
            en="The disk with the brain's data folder is full, can only be read, fails, or hangs.",
            zh="brain 数据目录所在的磁盘已满、只读、出错或无响应。",
        ),
        todo=Text(
            en="Make room on it, or mend it: the page says what is wrong. History and snapshots are then written by themselves. "
            "Faults are healed all the same. A brain that is restarted meanwhile reads the log from its last snapshot on, and "
            "the log does not reach back for ever; one whose disk hangs does not start at all.",
            zh="请腾出空间或修复磁盘（页面会说明原因），之后历史记录和快照会自动补写。故障处理不受影响。期间若重启 brain，"
            "它会从最近的快照开始重新读取日志，而日志并非无限期保留；若磁盘无响应，brain 将无法启动。",
        ),
    ),
    "log_refuses": Knowledge(
        cause=Text(
            en="Somebody has set a limit on the log's stream or on the NATS server that some messages do not fit.",
            zh="有人在日志的流或 NATS 服务器上设置了限制，部分消息因此无法写入。",
        ),
        todo=Text(
            en="`nats stream info` shows the limits of the stream (max_msg_size), the server's configuration its max_payload: "
            "take off what gpuward did not set. What was refused is tried again, and comes then; until then nothing comes "
            "of it.",
            zh="`nats stream info` 会显示流的限制（max_msg_size），服务器配置中有 max_payload：请去除并非由 gpuward 设置的限制。"
            "被拒绝的消息会自动重试；在此之前不会对其采取任何行动。",
        ),
    ),
    "archive_behind": Knowledge(
        cause=Text(
            en="The folder or the S3 server of the log's archive cannot be written, or is too slow.",
            zh="日志归档所在的目录或 S3 服务器无法写入，或写入过慢。",
        ),
        todo=Text(
            en="The page says what stands in the way: a full disk, credentials, a server that is down. Faults are healed all the "
            "same, and the archive goes on by itself; what the log drops before that (`log.max_age_s`, `log.max_bytes`) is "
            "missing in it.",
            zh="页面会说明原因：磁盘已满、凭据错误或服务器停机。故障处理不受影响，恢复后归档会自动继续；"
            "但在此之前被日志丢弃的内容（`log.max_age_s`、`log.max_bytes`）将在归档中缺失。",
        ),
    ),
    "archive_gap": Knowledge(
        cause=Text(
            en="The log dropped messages before they were archived: the archive could not be written for too long, or the log is "
            "too small for what came meanwhile.",
            zh="日志在归档之前丢弃了消息：归档中断过久，或日志容量不足。",
        ),
        todo=Text(
            en="Nothing brings them back; the archive says where they are missing (`gpuward log show URL`). Raise "
            "`log.max_bytes` (docs/operations.md), and see to it that `archive_behind` is looked at in time.",
            zh="这些消息无法恢复；归档会标明缺失位置（`gpuward log show URL`）。请增大 `log.max_bytes`"
            "（见 docs/operations.md），并及时处理 `archive_behind`。",
        ),
    ),
    "report_unsent": Knowledge(
        cause=Text(
            en="The mail server of a report cannot be reached, refuses us or an address, or its settings are wrong.",
            zh="报告所用的邮件服务器无法访问，或拒绝了本系统或某个收件地址，或其设置有误。",
        ),
        todo=Text(
            en="The page says what the server answers. Correct the table of `[[reports]]` in brain.toml or the file with its "
            "URL, and restart the brain; `gpuward doctor` tries the server. Until it is mailed it is tried again; the console "
            "has it under Reports.",
            zh="页面会说明服务器的答复。请修正 brain.toml 中的 `[[reports]]` 或保存 URL 的文件，然后重启 brain；"
            "`gpuward doctor` 可测试该服务器。发出之前会一直重试；控制台的“报告”页面也可查看。",
        ),
    ),
}
OTHERS = Knowledge(
    cause=Text(en="This brain itself is in trouble, not a node.", zh="出问题的是 brain 本身，而非节点。"),
    todo=Text(
        en="`gpuward status` on the brain's machine, and the log of its service (journalctl -u gpuward).",
        zh="在 brain 主机上执行 `gpuward status`，并查看其服务日志（journalctl -u gpuward）。",
    ),
)
