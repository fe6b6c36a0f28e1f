### The help of gpuward. The ids are made of the English, which stands in the code (agent/shared/words.py).

a-node-is-healthy-again-its-symptoms-end = 节点恢复正常：它的症状结束。
a-simulated-node-default-the-first-healthy-one = 一个模拟节点；默认：第一个健康的节点。
a-topology-file-by-hand-it-goes-before-all-others = 手写的拓扑文件：优先于其他所有来源。
acknowledges-an-incident-its-page-is-not-repeated = 确认一个故障：不再重复通知。
acknowledges-incident-id-its-page-is-not-repeated = 确认故障 ID：不再重复通知。
agrees-to-what-a-run-wants-to-do-next = 同意一次运行接下来要做的事。
all-tokens-and-logins-of-this-person = 此人的所有令牌和登录。
also-write-into-brain-toml-what-it-needs-for-that = 同时把所需内容写入 brain.toml。
an-option-or-a-file-must-be-corrected = 必须更正一个选项或文件
before-then = 在此之前。
brain-toml-default-etc-gpuward-brain-toml-if-it-exists = brain.toml；默认：/etc/gpuward/brain.toml（若有）。
ca-file = --ca-file
closed-ones-too-and-those-that-another-incident-explains = 也包括已关闭的，以及由其他故障解释的。
closes-an-incident = 关闭一个故障。
closes-incident-id-whatever-its-symptoms-are = 关闭故障 ID，无论它有什么症状。
compares-with-the-nodes-that-the-brain-has-heard = 与 brain 听到过的节点比较。
default-as-in-the-profile = 默认：与配置文件中相同。
does-not-wait-until-all-live-nodes-have-confirmed = 不等待所有在线节点确认。
done = 完成
each-fault-too-what-people-did-and-how-it-ended = 也列出每个故障：人做了什么，结果如何。
ends-a-hold = 结束一个暂停（hold）。
ends-a-run = 结束一次运行。
ends-by-itself-after-this-time-e-g-2h = 在这段时间之后自动结束，例如 2h。
environment = 环境变量
every-audit-line-of-it-too = 也包括它的每一条审计记录。
every-place-however-many-there-are = 列出所有位置，无论多少。
exit-status = 退出状态
fail = 失败
failed-or-refused-check-and-doctor-have-found-an-error = 失败，或被拒绝；check 和 doctor 发现了错误
fetches-the-evidence-bundle-of-an-incident-or-step = 取回一个故障或步骤的证据包。
file-for-it-readable-by-you-only-default-print-it = 写入令牌的文件，只有您能读取；默认：打印出来。
file-with-a-line-for-each-node-that-there-is = 一个文件，每个存在的节点占一行。
folder-for-history-sqlite-and-state-snapshot = 存放 history.sqlite 和 state.snapshot 的文件夹。
folder-of-the-rules-default-gpuward-s-own = 规则的文件夹；默认：gpuward 自带的。
folder-of-the-runbooks-default-beside-the-rules = 修复手册（runbook）的文件夹；默认：在规则旁边。
folder-of-the-runbooks-default-gpuward-s-own = 修复手册（runbook）的文件夹；默认：gpuward 自带的。
glob-of-node-names = 节点名称的通配模式。
glob-of-the-names-that-may-join-by-it = 可凭此令牌加入的节点名称的通配模式。
how-far-back = 回溯多久。
how-long-wait-waits-seconds = --wait 等待多久，以秒计。
how-many = 多少个。
how-many-may-join = 可以加入多少个节点。
how-many-past-notes-to-begin-with = 开始时显示多少条过去的记录。
incidents-and-notes-as-they-happen = 实时显示故障和记录。
interrupted = 被中断
it-waits-no-longer-than-this = 最多等待这么久。
json-for-scripts = JSON，供脚本使用。
lang = --lang
lets-disruptive-runs-begin-again-after-the-breaker-has-tripped = 断路器跳闸之后，允许有影响的运行重新开始。
lists-the-drills = 列出演练。
lists-the-profiles-and-the-scenarios = 列出故障配置文件和场景。
looks-over-a-whole-installation-and-says-what-to-do = 检查整个安装，并说明该做什么。
many-cells-under-one-view-who-leads-what-is-open = 一个视图中的多个 cell：谁是主、什么未结束。
more-lines-in-the-log = 日志中写更多内容。
name-or-address-of-one-of-the-servers-repeat-it = 其中一台服务器的名称或地址；可重复给出。
ok = 正常
only-against-these-causes-glob = 只看这些原因（通配模式）。
only-commands-about-these-glob = 只限关于这些修复手册的命令（通配模式）。
only-commands-on-these-glob-e-g-node-gpu = 只限对这些范围的命令（通配模式），例如 'node/gpu-*'。
only-of-these-runbooks-glob = 只看这些修复手册（通配模式）。
only-these-interfaces-of-lldp-glob-default-all = 只看 LLDP 的这些接口（通配模式）；默认：全部。
only-those-at-these-nodes-glob = 只看这些节点上的（通配模式）。
only-those-in-this-state-such-as-approval = 只看处于此状态的，例如 approval。
only-those-of-these-runbooks-glob = 只看这些修复手册的（通配模式）。
only-those-of-this-incident = 只看此故障的。
open-incidents = 未结束的故障。
open-incidents-newest-first = 未结束的故障，最新的在前。
opens-it-in-this-machine-s-browser-too = 同时在本机的浏览器中打开。
out-of-this-archive-default-of-the-brain-s-log = 取自此归档；默认：取自 brain 的日志。
overrides-console-port = 覆盖 console.port。
overrides-data-dir = 覆盖 data_dir。
port-of-nats-default-any-free-one = NATS 的端口；默认：任意空闲端口。
port-of-the-console = 控制台的端口。
s-a-cell-s-certificate-authority-its-nodes-and-the-f5d4d463 = 一个 cell 的证书颁发机构、它的节点，以及节点加入所用的令牌。
s-a-certificate-for-nats-servers-of-your-own-by-7036d236 =
    为您自己的 NATS 服务器生成证书，由 FOLDER 中只供它们使用的证书颁发机构签发。

    服务器需要 server.pem、server.key 和 ca.pem；ca.key 由您保管。再次给出同一 FOLDER：由同一颁发机构签发新证书，除非另外给出名称，否则名称不变。
s-a-fleet-s-faults-over-weeks-in-a-minute-8418d736 =
    用一分钟模拟一个集群数周的故障：在 gpuward 下结果如何；同样的故障若只靠人、只靠告警、靠排空并重启的脚本、靠 NVSentinel 的策略，结果又如何。NAME 是一个配置文件，说明什么多久坏一次；或一个场景，说明何时发生什么、应当得出什么结果：--list 中的名称，或您自己的 YAML 文件。

    不触及任何真实设备。退出状态 1：违反了安全法则，会讲述该节点的经过；或某个场景的结果与预期不符。
s-a-fleet-s-faults-over-weeks-what-comes-of-3e6f3c95 = 一个集群数周的故障：有 gpuward 时结果如何，没有时又如何。
s-a-link-that-opens-the-console-in-a-browser-6c006e50 = 一个链接，在浏览器中打开控制台，并以您的身份登录。
s-a-node-is-gone-for-good-nothing-of-it-366e3e34 = 节点永久离开：不留下它的任何内容。
s-prints-the-json-schema-of-files-of-scenarios-for-4f2a31a2 = 打印场景文件的 JSON Schema，供编辑器使用。
s-also-in-place-of-a-node-that-is-there-15c44a98 = 也可以替换已经存在、但使用另一把密钥的节点。
s-also-logs-in-to-one-bmc-of-each-table-55071ad3 = 还会登录每张表中的一个 BMC，并读取其电源状态。
s-approves-the-next-step-of-the-run-of-id-df1acf15 = 批准 ID（一次运行或其故障）的下一步。不带 --rung 时先显示是哪一步，再询问。
s-ca-of-an-https-brain-pem-a-cell-s-c0edbec0 = https:// brain 的 CA（PEM）；cell 的是 <data_dir>/cell/ca.pem
s-driver-version-e-g-580-82-default-as-the-67003acd = 驱动版本，例如 580.82；默认：以日志为准。
s-driver-version-e-g-580-82-default-as-the-806370d9 = 驱动版本，例如 580.82；默认：以各日志为准。
s-ends-the-hold-on-scope-where-several-holds-are-0850d87d = 结束 SCOPE 上的暂停。若有多个暂停，请用其 id 指定一个（`gpuward status` 会列出）。
s-ends-the-run-of-id-a-run-or-its-cacad1b9 = 结束 ID（一次运行或其故障）的运行：由人接手。
s-everything-on-one-machine-nats-brain-this-machine-s-768f3be4 = 一台机器上的全部组件：NATS、brain、本机的 agent、模拟节点。
s-everything-on-one-machine-nats-the-brain-the-agent-5cdaa26c =
    一台机器上的全部组件：NATS、brain、本机的 agent 和模拟节点。

    本机只被观察；模拟节点会被修复。只在本机回环地址上监听。Ctrl-C 停止。
s-exchanges-a-key-for-a-new-one-while-everything-ebb70448 =
    在一切照常运行时更换密钥。

    
    server     本机的证书和密钥，由同一颁发机构签发
    signing    为命令签名的密钥
    brain      brain 在 NATS 上的 NKEY
    authority  证书颁发机构
s-explains-what-a-kernel-log-means-file-several-for-4cd99241 =
    解释内核日志的含义（FILE：一个文件；多个文件对应多个节点；一个文件夹；或标准输入；也可以是 gzip、bzip2、xz）。

    退出状态 1：有一行可能重要却无法读取，或者没有任何行。
s-fetches-an-evidence-bundle-a-tar-gz-id-an-a868b920 = 取回一个证据包（.tar.gz）。ID：故障、运行或步骤（其最新的证据包），或 `gpuward explain` 显示的证据包名称。
s-file-with-your-token-default-on-the-machine-of-30d0b185 = 存放您的令牌的文件。在 brain 所在的机器上默认使用启动它的用户的令牌。
s-folder-of-everything-that-is-kept-a-later-up-3176a91a = 保存所有内容的文件夹；以后再执行 `up` 会从那里继续。
s-folder-of-rules-or-of-rules-and-runbooks-default-0f76cc4b = 规则的文件夹，或含 `rules` 和 `runbooks` 的文件夹；默认：日志中的，或 gpuward 自带的。
s-folder-of-rules-or-of-rules-and-runbooks-default-30741063 = 规则的文件夹，或含 `rules` 和 `runbooks` 的文件夹；默认：gpuward 自带的。
s-folder-to-write-accounts-and-users-for-nats-servers-8b590820 = 要写入的文件夹：供 operator 模式下的 NATS 服务器使用的账户和用户。
s-follows-the-incident-until-it-is-closed-exit-1-cda65907 = 跟踪故障直到它关闭；若没有关闭则退出状态为 1。
s-from-then-on-a-time-or-so-long-ago-9b526f3a = 从那时起：一个时间，或多久以前，例如 7d。
s-how-far-a-runbook-may-go-by-itself-observe-9019227d = 修复手册可以自行做到哪一步：observe（观察）、approve（批准）或 auto（自动）。
s-how-far-runbook-a-glob-may-go-by-itself-c614a0df = RUNBOOK（通配模式）可以自行做到哪一步：只做计划、先询问人、或直接行动。
s-how-many-times-shorter-verifications-and-resolve-delays-are-78f18917 = 验证和恢复延迟比生产环境短多少倍，因为模拟机器恢复得比真实机器快；1：规则和修复手册不变。
s-incidents-and-notes-as-they-happen-until-ctrl-c-2d65a3a5 =
    实时显示故障和记录，直到 Ctrl-C。

    如果输出不是终端：每条记录一行（--json：JSON 行）。连接中断后会从原处继续。
s-incidents-runs-and-nodes-live-in-a-terminal-and-fffe3b53 = 在终端中实时显示故障、运行和节点，并在其中答复。
s-incidents-runs-and-nodes-live-in-this-terminal-what-3743a007 =
    在此终端中实时显示故障、运行和节点：需要人处理的排在最前，每一项都有解释，并用按键答复。

    `?` 显示按键，`q` 退出。对 brain 说的每句话都会先原样显示并询问。用于管道或脚本：
    `gpuward incidents --json`、`gpuward watch`。
s-injects-a-fault-into-a-simulated-node-of-a-60289093 = 向正在运行的 `up` 的一个模拟节点注入故障。
s-injects-the-drill-name-into-a-simulated-node-of-81b39766 = 向正在运行的 `gpuward up` 的一个模拟节点注入演练 NAME。
s-language-of-help-and-answers-also-behind-a-command-b11ad071 = 帮助和回答所用的语言，也可以写在命令之后；默认：由区域设置（locale）决定。有 --json 时总是英语。
s-language-of-help-and-answers-en-zh-of-gpuward-4d03376a = 帮助和回答所用的语言（en、zh），对 gpuward-agent 也有效
s-leave-out-this-message-as-a-brain-does-that-65d7bfc9 = 略过此消息，如同 brain 对使它崩溃两次的消息所做的那样；每条消息各写一次。
s-lets-the-node-name-in-by-its-public-nkey-1becde87 = 让节点 NAME 以它的公开 NKEY（U...）加入，该密钥由人在节点上生成。
s-looks-over-a-whole-installation-a-line-for-each-2b69296b =
    检查整个安装：每项检查一行，并说明该做什么。有失败项时退出状态为 1。

    请在 brain 所在的机器上，以 root 或 brain 的用户执行，无论 brain 是否在运行。它不改变任何东西，也不通知任何人。
s-makes-a-brain-s-history-and-state-of-source-dff2d469 = 由 SOURCE（文件或归档的 URL）生成 brain 的历史和状态，如同 brain 读完了全部内容。不执行任何操作，也不通知任何人。
s-makes-a-join-token-gpuward-agent-join-token-on-6d40e3d0 = 生成加入令牌：在每个节点上执行 `gpuward-agent join TOKEN`。它只显示一次。
s-makes-a-token-for-name-default-for-yourself-it-eff55ff9 = 为 NAME 生成令牌（默认：为您自己）。它只显示一次：brain 只保存其哈希。
s-makes-a-topology-file-from-what-others-know-of-8fad79bc = 由他人所知的信息生成拓扑文件。每一类位置由以下第一个知道该节点位置的来源决定：手写的文件、布线（先 InfiniBand，后 LLDP）、Kubernetes、Slurm。矛盾之处会被指出。
s-makes-the-authority-and-the-certificate-of-nats-and-dfac7c9a = 生成证书颁发机构，以及 NATS 和控制台的证书。打印要写入 brain.toml 的内容，或直接写入。
s-many-cells-under-one-view-who-leads-what-is-999092f9 =
    一个视图中的多个 cell：谁是主、什么未结束、什么在等人。

    有 cell 不回答或不做修复时退出状态为 1。
s-name-or-address-by-which-nodes-reach-this-machine-b4189082 = 节点访问本机所用的名称或地址；可重复给出。
s-node-is-gone-for-good-its-incidents-and-pages-83385219 = NODE 永久离开：它的故障和通知结束，任何列表和统计中都不再有它。仍能听到它时会被拒绝；再次听到时它是一个新节点。
s-node-is-healthy-again-it-looks-again-and-what-6fbdda90 = NODE 恢复正常：它重新查看一遍，它不再上报的就算结束。
s-nothing-disruptive-is-done-in-a-scope-until-it-273f1956 = 在解除之前，某个范围内不做任何有影响的操作。
s-nothing-disruptive-is-done-in-scope-until-it-is-f7d316c8 = 在解除之前，SCOPE 中不做任何有影响的操作：node/n1、leaf/l3、rack/r7、gpu/n1/0000:3b:00，或 all。
s-nothing-has-happened-yet-a-second-person-must-say-2ffe722d = 还没有做任何事：必须由第二个人说同样的话（console.two_persons）
s-the-step-that-is-approved-as-the-page-named-50f4f58d = 所批准的一步，即通知中指明的那一步，别无其他。
s-only-reads-the-configuration-exit-status-0-or-2-ed50c4aa = 只读取配置：退出状态 0；或 2，并说明哪里有错。对不妨碍 brain 启动的问题发出警告。
s-paste-a-dmesg-what-is-wrong-how-sure-what-2a6a648d = 粘贴 dmesg：哪里有问题、把握多大、该做什么。
s-pem-file-with-the-ca-of-an-https-brain-2ef7db1c = 含 https:// brain 的 CA 的 PEM 文件；默认：系统的 CA。
s-prints-a-link-that-opens-the-console-logged-in-9883f3fd =
    打印一个链接，打开控制台并以您的身份登录。

    它在一分钟之内可用一次，权限与您的令牌相同，直到您的令牌到期。
s-prints-the-completion-of-shell-for-its-file-bash-299448a2 = 打印 SHELL 的补全脚本，写入其文件：bash 为 ~/.local/share/bash-completion/completions/gpuward；zsh 为 $fpath 中某文件夹的 _gpuward；fish 为 ~/.config/fish/completions/gpuward.fish。软件包已经安装了它。
s-replays-path-through-the-engine-in-recorded-time-what-123c14a5 =
    在记录的时间中用引擎重放 PATH：gpuward 会看到、决定、暂停和通知什么。PATH 是 `gpuward log export` 的文件，或一个内核日志的文件夹，各文件名为 <node>.log，并可有 topology.yaml 和 facts.jsonl。

    退出状态 1：有内容无法读取。
s-resets-the-breaker-that-has-stopped-all-disruptive-runs-f60afc81 = 复位停止了所有有影响的运行的断路器：它们可以重新开始。
s-runs-of-runbooks-what-is-done-and-what-waits-d1c00659 = 修复手册的运行：做了什么，什么在等人。
s-seed-of-your-operator-or-of-one-of-its-59bc76be = 您的 operator 或其某个签名密钥的种子；默认：nats.operator.seed_file，或新的 operator。
s-server-a-further-name-of-this-machine-it-keeps-e2c96f43 = server：本机的又一个名称；原有的保留。
s-signing-no-old-key-endorses-the-new-one-and-4e6de397 = signing：没有旧密钥为新密钥背书，每个节点都必须重新加入。
s-so-many-nodes-with-as-many-faults-each-default-73142363 = 节点数量，每个节点的故障数不变；默认：与配置文件中相同。
s-starts-runbook-on-a-node-or-a-fabric-without-73ef9998 = 在没有故障的节点或网络上启动 RUNBOOK，前提是它可以被请求；在 observe 模式下是一次演习。
s-takes-a-node-or-a-join-token-its-id-3fb84b7a = 立即取消一个节点或一个加入令牌（其 id）：节点的连接被关闭，brain 忘记它。
s-takes-tokens-away-at-once-with-user-the-person-8c4f1eb3 = 立即取消令牌；有 --user 时，此人在这个 brain 上的登录也会结束。
s-takes-what-gpuward-cell-share-of-another-brain-has-033848d4 = 取用另一个 brain 的 `gpuward cell share` 写入 FILE 的内容（-：取自标准输入）。可以安全地重复执行。
s-the-accounts-for-a-nats-cluster-of-your-own-1f08ce35 = 供您自己的 NATS 集群使用的账户，作为可包含（include）的文件。
s-the-brain-service-sigterm-and-ctrl-c-stop-it-d82a5d1d = brain 服务。SIGTERM 和 Ctrl-C 使它正常停止，SIGHUP 使它重新读取规则和修复手册。
s-the-cells-default-config-gpuward-fleet-toml-then-etc-1c07802f = 各个 cell。默认：~/.config/gpuward/fleet.toml，其次 /etc/gpuward/fleet.toml。
s-the-fabric-for-a-runbook-that-looks-at-a-96f33009 = 网络（fabric），用于查看整个网络的修复手册。
s-the-log-as-a-file-everything-that-was-told-aaff62d0 = 日志文件：按顺序记录了被告知、决定和执行的一切（docs/operations.md）。
s-the-log-as-a-file-exported-looked-at-replayed-e0229d18 = 日志文件：导出、查看、重放；也可取自其归档。
s-the-rules-as-they-were-prints-what-the-change-eb27dba6 = 原来的规则：以 Markdown 打印改用 --rules 后增加、失去和改变了什么。
s-the-state-of-the-brain-and-the-holds-and-e5fbfc95 = brain 的状态，以及生效中的暂停和模式。
s-the-trees-of-places-with-their-numbers-of-nodes-6c87ef93 = 位置的树及其节点数，以及哪些未知。FILE：默认为 brain.toml 的 `topology`。
s-tokens-each-belongs-to-a-person-of-console-users-d2d09f5e = 令牌：每个属于 [console.users] 中的一个人，权限可以小于此人，会到期，也可以被取消。
s-validates-rules-and-runbooks-runs-their-examples-counts-coverage-8a540208 = 检查规则和修复手册，运行其示例，统计覆盖率。有任何错误时退出状态为 1。
s-watches-a-gpu-fleet-finds-out-what-is-wrong-4951b48c = 监视 GPU 集群，找出问题，并修复它。
s-what-a-label-of-a-node-tells-an-empty-b4b4308c = 节点的一个标签说明了什么；KIND 为空：什么也不说明。
s-what-either-prints-of-an-infiniband-fabric-several-fabrics-0bd52ba4 = 这两者之一对 InfiniBand 网络的输出；有多个网络时需要名称。
s-what-helped-against-which-fault-and-what-did-not-2f68fbe8 =
    什么对哪种故障有效，什么无效；gpuward 建议什么，又收回了什么。

    区间：它有效的故障所占比例，在 100 次中有 95 次落在此区间（Wilson）。
    复发：它修复的故障中，有多少在一天内和一周内复发。
s-what-is-known-of-whatever-has-an-id-and-89c5adfa =
    凡是有 id 的东西，已知的一切，以及其故障的完整因果链。

    ID：故障（或其 id 的开头）、通知、运行、步骤、告警组、暂停、作为证据的上报或记录；操作命令所回答的 id；节点的命令。与 --why-not 一起：SCOPE，例如 gpu/n1/0000:3b:00、node/n1、leaf/l3 或 cell。
s-what-is-wrong-with-a-topology-file-and-what-9e8457db =
    拓扑文件有什么错误，哪里像是笔误。有任何错误时退出状态为 1。

    FILE：默认为 brain.toml 的 `topology`。
s-what-it-may-do-at-most-default-what-its-fd3fe4aa = 它最多可以做什么；默认：其用户可以做的。
s-what-lldpcli-show-neighbors-f-json-prints-on-node-0d6d847e = `lldpcli show neighbors -f json` 在节点 NAME 上的输出：NAME.json。
s-what-runbooks-would-have-done-by-themselves-and-what-10aeb7d9 = 修复手册自己会做什么，人又做了什么。
s-what-share-has-printed-nothing-is-taken-if-file-b6661f82 = `share` 打印的值：若 FILE 在那之后被改动，则什么也不取用。
s-what-source-has-a-file-or-the-url-of-7b67be0f = SOURCE（文件或归档的 URL）中有什么，是否完整：会全部读取。
s-what-the-runbooks-in-observe-or-approve-mode-would-0356a601 =
    observe 或 approve 模式的修复手册会做什么，而人实际做了什么。

    这是您让某个修复手册自行行动的依据：`gpuward mode RUNBOOK auto`。
s-whatever-has-an-id-the-whole-chain-back-to-a66126e0 = 凡是有 id 的东西：完整的因果链，直到内核日志行。
s-where-the-brain-is-default-as-etc-gpuward-brain-1711e572 = brain 在哪里。默认：按 /etc/gpuward/brain.toml 所写，否则 http://127.0.0.1:8470。
s-where-the-brain-s-console-is-default-that-of-733352c3 = brain 的控制台在哪里；默认：/etc/gpuward/brain.toml 所写的，否则 http://127.0.0.1:8470
s-where-the-console-is-reached-default-by-the-first-c384bfb7 = 控制台的访问地址；默认：使用 cell 的第一个名称。
s-where-the-nodes-stand-as-in-brain-toml-default-1ab0573e = 节点的位置，如 brain.toml 中所写；默认：文件夹中的 topology.yaml（若有）。
s-where-the-nodes-stand-racks-leaf-switches-power-feeds-b887a7f7 = 节点在哪里：机架、叶交换机、供电。不带命令时：`print`。
s-where-to-write-it-to-standard-output-default-its-2d812933 = 写到哪里；-：标准输出。默认：以它自己的名称写入当前文件夹。
s-who-belongs-to-a-cell-its-certificates-nodes-and-bdb6f4ab = 谁属于一个 cell：它的证书、节点和加入令牌。
s-why-this-rule-does-not-match-at-scope-now-851f5646 = 为什么此规则现在在 SCOPE 不匹配，或者匹配之后怎样了。
s-writes-text-down-about-incident-id-for-the-others-28ab97a8 = 为他人记下关于故障 ID 的 TEXT：它显示在 `explain` 中，不决定任何事。
s-writes-the-log-into-file-a-line-of-json-703ce011 = 把日志写入 FILE：每条消息一行 JSON；名称以 .gz 结尾时压缩。
s-writes-the-report-with-plots-into-this-file-needs-528978c0 = 把带图的报告写入此文件；需要 gpuward[report]。
s-writes-what-a-nats-cluster-of-your-own-in-0e0f8bd7 = 写出您自己的 operator 模式 NATS 集群所需的内容：其中的 README.txt 说明如何使用。
s-writes-what-another-brain-of-this-cell-needs-into-21e58913 = 把此 cell 的另一个 brain 所需的内容写入 FILE（-：打印出来）：其中有它的密钥，请保密。
s-your-token-s-file-default-on-the-brain-s-c6fb47e6 = 存放您的令牌的文件；在 brain 所在的机器上默认使用启动它的人的令牌
show-the-version-and-exit = 显示版本并退出。
shows-the-authority-the-nodes-and-the-join-tokens = 显示证书颁发机构、节点和加入令牌。
simulated-nodes = 模拟节点的数量。
slurm-s-topology-conf = Slurm 的 topology.conf。
starts-a-runbook-on-a-node-without-a-fault = 在没有故障的节点上启动修复手册。
the-brain-s-data-folder-instead = 改用 brain 的此数据文件夹。
the-brain-service = brain 服务。
the-file-default-stdout = 文件；默认：标准输出。
the-newest-runs-of-runbooks = 修复手册的最新运行。
the-node-to-start-it-on = 在哪个节点上启动。
the-nodes-and-their-newest-heartbeats = 节点及其最新的心跳。
the-reason-for-the-others = 理由，供他人参考。
the-same-seed-gives-the-same-month = 同样的种子得到同样的一个月。
token-file = --token-file
toml-file-see-deploy-brain-toml = TOML 文件；见 deploy/brain.toml。
unchecked = 未检查
until-it-expires = 多久之后到期。
url = --url
validates-rules-and-runbooks-runs-their-examples = 检查规则和修复手册，运行其示例。
warn = 警告
what-bash-zsh-or-fish-needs-to-complete-these = bash、zsh 或 fish 补全这些命令所需的内容。
what-gpuward-would-have-seen-and-decided-of-a-recording = gpuward 对一份记录会看到和决定什么。
what-helped-against-which-fault-and-what-did-not = 什么对哪种故障有效，什么无效。
what-kubectl-get-nodes-o-json-prints = `kubectl get nodes -o json` 的输出。
what-others-must-know-about-it = 他人必须知道的内容。
where-nodes-stand-shown-checked-made-from-others-files = 节点在哪里：显示、检查、由他人的文件生成。
where-the-brain-is = brain 在哪里。
which-cell-of-an-archive-default-its-only-one = 归档中的哪个 cell；默认：唯一的那个。
which-log-of-it-gpuward-log-show-default-the-newest = 其中的哪份日志（`gpuward log show`）；默认：最新的。
who-may-come-in-makes-lists-and-revokes-tokens = 谁可以进入：生成、列出和取消令牌。
with-name-it-keeps-none-of-those-that-it-has = 与 --name 一起：不保留原有的任何名称。
writes-something-down-about-an-incident-for-the-others = 为他人记下关于一个故障的内容。
your-tokens-for-administrators-everybody-s = 您的令牌；管理员可看到所有人的。
failed-check-the-node-is-unfit-for-jobs = 失败；check：该节点不适合运行作业
language-of-help-and-messages-en-zh = 帮助和消息所用的语言（en、zh）
s-done-check-the-node-is-fit-for-jobs-or-8943f8be = 完成；check：该节点适合运行作业，或无人知道
