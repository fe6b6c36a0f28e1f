# ruff: noqa: E501  # kernel lines stand as they are printed
"""Kernel lines by area: what each says, in the words that drivers really print, and what is none of our business."""

import importlib
import re
import time
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agent.contract import kernel_text, kinds
from agent.contract.components import check
from agent.contract.lines import KernelReader, LineReader, areas
from agent.contract.lines.base import Area
from agent.contract.lines.pcie import pci_drivers
from agent.contract.messages import UnsentEvent
from tests.fixtures import ordinary
from tests.yardstick import slowness

NVSWITCH = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): "
# line, kind, component, severity, fields
TABLE: list[tuple[str, str, str, str, dict[str, Any]]] = [
    # --- SXid ---
    (NVSWITCH + "12028, Non-fatal, Link 32 egress non-posted PRIV error (First)", "nvswitch.sxid", "nvswitch/0000:c1:00", "warning", {"code": 12028, "name": "egress nonposted PRIV error", "link": 32, "said": "non-fatal", "action": ""}),
    (NVSWITCH + "20034, Fatal, Link 30 LTSSM Fault Up", "nvswitch.sxid", "nvswitch/0000:c1:00", "fatal", {"code": 20034, "link": 30, "action": "RESET_GPUS_AND_NVSWITCHES"}),
    (NVSWITCH + "10004, Thermal Event Start, TSENSE WARN: 110", "nvswitch.sxid", "nvswitch/0000:c1:00", "warning", {"code": 10004, "link": None, "name": "Host_thermal_event_start"}),
    (NVSWITCH + "10003, Fatal, Host unhandled interrupt", "nvswitch.sxid", "nvswitch/0000:c1:00", "fatal", {"link": None}),
    (NVSWITCH + "19049, Non-fatal, Link 04 NVLTLC ECC limit", "nvswitch.sxid", "nvswitch/0000:c1:00", "info", {"action": "IGNORE", "link": 4}),
    (NVSWITCH + "31337, Fatal, Link 01 something new", "nvswitch.sxid", "nvswitch/0000:c1:00", "unknown", {"name": "unknown", "action": ""}),
    ("nvidia-nvswitch0: SXid (PCI:0000:08:00.0): 22013, Non-fatal, Link 61 Minion Link DLREQ interrupt", "nvswitch.sxid", "nvswitch/0000:08:00", "info", {"link": 61}),
    # --- NVIDIA modules ---
    ("NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x62:0x40:2393)", "gpu.init_failed", "gpu/0000:3b:00", "fatal", {"message": "RmInitAdapter failed! (0x62:0x40:2393)"}),
    ("NVRM: GPU 0000:3b:00.0: rm_init_adapter failed, device minor number 3", "gpu.init_failed", "gpu/0000:3b:00", "fatal", {}),
    ("NVRM: RmInitAdapter failed! (0x26:0xffffffff:1096)", "gpu.init_failed", "node", "fatal", {"message": "RmInitAdapter failed! (0x26:0xffffffff:1096)"}),
    ("NVRM: rm_init_adapter(0) failed", "gpu.init_failed", "node", "fatal", {}),
    ("nvidia: probe of 0000:3b:00.0 failed with error -1", "gpu.init_failed", "gpu/0000:3b:00", "fatal", {"message": "failed with error -1"}),
    ("nvidia 0000:3b:00.0: probe with driver nvidia failed with error -1", "gpu.init_failed", "gpu/0000:3b:00", "fatal", {"message": "failed with error -1"}),
    ("NVRM: BAR1 is 0M @ 0x0 (PCI:0000:3b:00.0)", "gpu.init_failed", "gpu/0000:3b:00", "fatal", {"message": "BAR1 is 0M @ 0x0 (PCI:0000:3b:00.0)"}),
    ("NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\nNVRM: BAR0 is 0M @ 0x0 (PCI:0000:3b:00.0)", "gpu.init_failed", "gpu/0000:3b:00", "fatal", {"message": "BAR0 is 0M @ 0x0 (PCI:0000:3b:00.0)"}),
    ("NVRM: The NVIDIA probe routine failed for 1 device(s).", "gpu.init_failed", "node", "fatal", {}),
    ("NVRM: None of the NVIDIA devices were initialized.", "gpu.init_failed", "node", "fatal", {}),
    ("NVRM: Attempting to remove device 0000:3b:00.0 with non-zero usage count!", "gpu.off_bus", "gpu/0000:3b:00", "fatal", {}),
    ("NVRM: Attempting to remove minor device 3 with non-zero usage count!", "gpu.off_bus", "node", "fatal", {}),
    ("nvidia 0000:3b:00.0: Unable to change power state from D3cold to D0, device inaccessible", "gpu.off_bus", "gpu/0000:3b:00", "fatal", {"message": "Unable to change power state from D3cold to D0, device inaccessible"}),
    ("nvidia 0000:3b:00.0: can't change power state from D3cold to D0 (config space inaccessible)", "gpu.off_bus", "gpu/0000:3b:00", "fatal", {}),
    ("nvidia 0000:3b:00.0: not ready 65535ms after FLR; giving up", "gpu.off_bus", "gpu/0000:3b:00", "fatal", {"message": "not ready 65535ms after FLR; giving up"}),
    ("NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7", "gpu.locked", "node", "error", {"message": "GPU is probably locked!  Notify Timeout Seconds: 7"}),
    ("NVRM: GPU0 krcWatchdogCallbackPerf_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7", "gpu.locked", "node", "error", {}),
    ("NVRM: API mismatch: the client has the version 570.86.10, but\nNVRM: this kernel module has the version 550.54.15.  Please\nNVRM: make sure that this kernel module and all NVIDIA driver", "gpu.version_mismatch", "node", "error", {"client": "570.86.10", "module": "550.54.15"}),
    ("NVRM: API mismatch: the client 'nvidia-smi' (pid 4711)\nNVRM: has the version 570.86.15, but this kernel module has\nNVRM: the version 550.54.15.  Please make sure that this\nNVRM: kernel module and all NVIDIA driver components\nNVRM: have the same version.", "gpu.version_mismatch", "node", "error", {"client": "570.86.15", "module": "550.54.15"}),
    ("NVRM: API mismatch: the client has the version 470.129.06, but", "gpu.version_mismatch", "node", "error", {"client": "470.129.06", "module": "unknown"}),
    ("NVRM: API mismatch: the client 'nvidia-smi' (pid 4711)", "gpu.version_mismatch", "node", "error", {"client": "unknown", "module": "unknown"}),
    ("NVRM: API mismatch: the client has the version 1.0-8776, but\nNVRM: this kernel module has the version 1.0-9746.  Please", "gpu.version_mismatch", "node", "error", {"client": "1.0-8776", "module": "1.0-9746"}),
    ("nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing", "gpu.peermem", "node", "warning", {"what": "invalid_context"}),
    ("nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)", "gpu.peermem", "node", "error", {"what": "symbols"}),
    ("nvidia_peermem: disagrees about version of symbol ib_unregister_peer_memory_client", "gpu.peermem", "node", "error", {"what": "symbols"}),
    # --- mlx5 and InfiniBand ---
    ("mlx5_core 0000:5e:00.0: poll_health:776:(pid 0): device's health compromised - reached miss count", "nic.driver", "nic/0000:5e:00.0", "fatal", {"what": "health_compromised", "address": "0000:5e:00.0"}),
    ("mlx5_core 0000:5e:00.1: wait_func:1195:(pid 1967079): ENABLE_HCA(0x104) timeout. Will cause a leak of a command resource", "nic.driver", "nic/0000:5e:00.1", "fatal", {"what": "command_timeout", "command": "ENABLE_HCA"}),
    ("mlx5_core 0000:5e:00.0: mlx5_function_setup:1198:(pid 1): Firmware over 120000 MS in pre-initializing state, aborting", "nic.driver", "nic/0000:5e:00.0", "fatal", {"what": "start_failed"}),
    ("mlx5_core 0000:5e:00.0: mlx5_function_enable:1089:(pid 1): Firmware over 120000 MS in initializing state, aborting", "nic.driver", "nic/0000:5e:00.0", "fatal", {"what": "start_failed"}),
    ("mlx5_core 0000:5e:00.0: mlx5_init_one failed with error code -110", "nic.driver", "nic/0000:5e:00.0", "fatal", {"what": "start_failed"}),
    ("mlx5_core 0000:5e:00.0: probe_one:1751:(pid 7): mlx5_init_one failed with error code -110", "nic.driver", "nic/0000:5e:00.0", "fatal", {"what": "start_failed"}),
    ("mlx5_core 0000:5e:00.0: init_one:1371:(pid 7): mlx5_load_one failed with error code -5", "nic.driver", "nic/0000:5e:00.0", "fatal", {"what": "start_failed"}),
    ("mlx5_core: probe of 0000:5e:00.0 failed with error -110", "nic.driver", "nic/0000:5e:00.0", "fatal", {"what": "start_failed", "address": "0000:5e:00.0"}),
    ("mlx5_core 0000:5e:00.0: probe with driver mlx5_core failed with error -110", "nic.driver", "nic/0000:5e:00.0", "fatal", {"what": "start_failed"}),
    ("mlx5_core 0000:5e:00.0: mlx5_cmd_out_err:838:(pid 912): ACCESS_REG(0x805) op_mod(0x1) failed, status bad parameter(0x3), syndrome (0x355), err(-22)", "nic.driver", "nic/0000:5e:00.0", "warning", {"what": "command_failed", "command": "ACCESS_REG"}),
    ("mlx5_core 0000:5e:00.0: print_health_info:408:(pid 0): synd 0x8: unrecoverable hardware error", "nic.driver", "nic/0000:5e:00.0", "fatal", {"what": "hardware_error"}),
    ("mlx5_core 0000:5e:00.0 ens1np0: TX timeout detected", "nic.driver", "link/ens1np0", "error", {"what": "tx_timeout", "interface": "ens1np0"}),
    ("mlx5_core 0000:5e:00.0 ens1np0: TX timeout on queue: 3, SQ: 0x10f4, CQ: 0x101b, SQ Cons: 0x5 SQ Prod: 0x9, usecs since last trans: 11884000", "nic.driver", "link/ens1np0", "error", {"what": "tx_timeout"}),
    ("mlx5_core 0000:5e:00.0 ens1np0: RX timeout on channel: 4, ICOSQ: 0x11d4 RQ: 0x11d9, CQ: 0x1023", "nic.driver", "link/ens1np0", "error", {"what": "rx_timeout"}),
    ("NETDEV WATCHDOG: ens1np0 (mlx5_core): transmit queue 12 timed out", "nic.driver", "link/ens1np0", "error", {"what": "tx_timeout"}),
    ("mlx5_core 0000:5e:00.0 ens1np0: NETDEV WATCHDOG: CPU: 30: transmit queue 2 timed out 8448 ms", "nic.driver", "link/ens1np0", "error", {"what": "tx_timeout"}),
    ("ib0: queue stopped 1, tx_head 128, tx_tail 0", "nic.driver", "link/ib0", "error", {"what": "tx_timeout"}),
    ("ib0: transmit timeout: latency 1840 msecs", "nic.driver", "link/ib0", "error", {"what": "tx_timeout"}),
    ("mlx5_core 0000:5e:00.0: Port module event: module 0, Cable unplugged", "nic.driver", "nic/0000:5e:00.0", "warning", {"what": "cable_unplugged", "module": 0}),
    ("mlx5_core 0000:5e:00.0: Port module event[error]: module 1, Cable error, Bus stuck (I2C or data shorted)", "nic.driver", "nic/0000:5e:00.0", "error", {"what": "module_error", "module": 1}),
    ("mlx5_core 0000:5e:00.0: Port module event[error]: module 0, Cable error, High Temperature", "nic.driver", "nic/0000:5e:00.0", "error", {"what": "high_temperature"}),
    ("mlx5_core 0000:5e:00.0: Port module event[error]: module 0, Cable error, Power budget exceeded", "nic.driver", "nic/0000:5e:00.0", "error", {"what": "insufficient_power"}),
    ("mlx5_core 0000:5e:00.0: temp_warn:171:(pid 0): High temperature on sensors with bit set 0 1", "nic.driver", "nic/0000:5e:00.0", "error", {"what": "high_temperature"}),
    ("mlx5_core 0000:5e:00.0: mlx5_pcie_event:301:(pid 268): Detected insufficient power on the PCIe slot (27W).", "nic.driver", "nic/0000:5e:00.0", "error", {"what": "insufficient_power"}),
    ("NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!", "gpu.nvlink_discovery", "node", "error", {"function": "knvlinkDiscoverPostRxDetLinks", "message": "Getting peer0's postRxDetLinkMask failed!"}),
    ("NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!", "gpu.nvlink_discovery", "node", "error", {"function": "knvlinkUpdatePostRxDetectLinkMask"}),
    ("NVRM: GPU0 knvlinkDiscoverPostRxDetLinks_GH100: Getting peer1's postRxDetLinkMask failed!", "gpu.nvlink_discovery", "node", "error", {"function": "knvlinkDiscoverPostRxDetLinks"}),
    # --- Ethernet links, of which a kept log tells by these lines only ---
    ("mlx5_core 0000:08:00.0 eth2: Link down", "link.state", "link/eth2", "warning", {"up": False, "admin_up": True, "carrier": False, "operstate": "down"}),
    ("mlx5_core 0000:08:00.0 ens1f0np0: Link up", "link.state", "link/ens1f0np0", "info", {"up": True, "carrier": True, "operstate": "up"}),
    ("igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Down", "link.state", "link/eth0", "warning", {"up": False}),
    ("igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: RX/TX", "link.state", "link/eth0", "info", {"up": True}),
    ("ixgbe 0000:03:00.0 eno1: NIC Link is Down", "link.state", "link/eno1", "warning", {"up": False}),
    ("ixgbe 0000:03:00.0 eno1: NIC Link is Up 10 Gbps, Flow Control: None", "link.state", "link/eno1", "info", {"up": True}),
    ("i40e 0000:18:00.0 eno1np0: NIC Link is Down", "link.state", "link/eno1np0", "warning", {}),
    ("ice 0000:31:00.0 ens2f0: NIC Link is Down", "link.state", "link/ens2f0", "warning", {}),
    ("bnxt_en 0000:04:00.0 ens1f0np0: NIC Link is Down", "link.state", "link/ens1f0np0", "warning", {}),
    ("tg3 0000:03:00.0 eth0: Link is down", "link.state", "link/eth0", "warning", {}),
    ("tg3 0000:03:00.0 eth0: Link is up at 1000 Mbps, full duplex", "link.state", "link/eth0", "info", {}),
    ("r8169 0000:03:00.0 enp3s0: Link is Up - 1Gbps/Full - flow control off", "link.state", "link/enp3s0", "info", {}),
    ("cxgb4 0000:04:00.4 eth2: link down", "link.state", "link/eth2", "warning", {}),
    ("e1000e: eth0 NIC Link is Down", "link.state", "link/eth0", "warning", {}),
    ("bnx2 0000:17:00.0: eth0: NIC Copper Link is Down", "link.state", "link/eth0", "warning", {"up": False}),
    ("bnx2 0000:17:00.0 eth0: NIC SerDes Link is Down", "link.state", "link/eth0", "warning", {"up": False}),
    ("bnx2: eth0 NIC Copper Link is Down", "link.state", "link/eth0", "warning", {"up": False}),
    ("e1000: eth0 NIC Link is Down", "link.state", "link/eth0", "warning", {"up": False}),
    ("e1000: eth0: e1000_watchdog_task: NIC Link is Down", "link.state", "link/eth0", "warning", {"up": False}),
    ("tg3: eth0: Link is down.", "link.state", "link/eth0", "warning", {"up": False}),
    ("tg3 0000:17:00.0: eth0: Link is down", "link.state", "link/eth0", "warning", {"up": False}),
    ("ixgbe 0000:17:00.0: eth0: NIC Link is Down", "link.state", "link/eth0", "warning", {"up": False}),
    ("igb 0000:17:00.0: eth0 NIC Link is Down", "link.state", "link/eth0", "warning", {"up": False}),
    ("bnx2x 0000:17:00.0: eth4: NIC Link is Down", "link.state", "link/eth4", "warning", {"up": False}),
    ("r8169 0000:17:00.0: eth0: link down", "link.state", "link/eth0", "warning", {"up": False}),
    ("vmxnet3 0000:0b:00.0: eth0: NIC Link is Down", "link.state", "link/eth0", "warning", {"up": False}),
    ("enic 0000:05:00.0 enp5s0: Link DOWN", "link.state", "link/enp5s0", "warning", {"up": False}),
    ("mlxbf_gige MLNXBF17:00 oob_net0: Link is Down", "link.state", "link/oob_net0", "warning", {"up": False}),
    ("stmmaceth 1-0005 eth0: Link is Down", "link.state", "link/eth0", "warning", {"up": False}),
    ("macb ff0e0000.ethernet eth0: Link is Down", "link.state", "link/eth0", "warning", {"up": False}),
    ("fec 2188000.ethernet eth0: Link is Down", "link.state", "link/eth0", "warning", {"up": False}),
    ("mlx5_core.sf.4 en3f0pf0sf4: Link down", "link.state", "link/en3f0pf0sf4", "warning", {"up": False}),
    ("mlx5_core mlx5_core.sf.4 en3f0pf0sf4: Link down", "link.state", "link/en3f0pf0sf4", "warning", {"up": False}),
    ("[qede_link_update:3203(ens1f0)]Link is down", "link.state", "link/ens1f0", "warning", {"up": False}),
    ("qede 0000:04:00.0 eth2: Link is down", "link.state", "link/eth2", "warning", {"up": False}),
    ("atlantic 0000:01:00.0 eth0: atlantic: link change old 10000 new 0", "link.state", "link/eth0", "warning", {"up": False}),
    ("virtio_net virtio0 eth0: Link is Down", "link.state", "link/eth0", "warning", {"up": False}),
    ("atlantic 0000:01:00.0 eth0: atlantic: link change old 0 new 10000", "link.state", "link/eth0", "info", {"up": True}),
    ("enic 0000:05:00.0 enp5s0: Link UP", "link.state", "link/enp5s0", "info", {"up": True}),
    ("mlx4_en: eth2: Link Down", "link.state", "link/eth2", "warning", {}),
    ("mlx4_en: eth2: Link Up", "link.state", "link/eth2", "info", {}),
    ("i40e 0000:18:00.0 eth0: tx_timeout: VSI_seid: 390, Q 3, NTC: 0x1a, HWB: 0x1a, NTU: 0x2b, TAIL: 0x2b, INT: 0x0", "nic.driver", "link/eth0", "error", {"what": "tx_timeout"}),
    ("ixgbe 0000:03:00.0 eno1: initiating reset due to tx timeout", "nic.driver", "link/eno1", "error", {"what": "tx_timeout"}),
    ("ixgbe 0000:03:00.0 eno1: Detected Tx Unit Hang", "nic.driver", "link/eno1", "error", {"what": "tx_timeout"}),
    ("bnxt_en 0000:19:00.0 ens1f0np0: TX timeout detected, starting reset task!", "nic.driver", "link/ens1f0np0", "error", {"what": "tx_timeout"}),
    ("ena 0000:00:05.0 eth2: Found a Tx that wasn't completed on time, qid 3, index 5.", "nic.driver", "link/eth2", "error", {"what": "tx_timeout"}),
    ("tg3 0000:03:00.0 eth0: transmit timed out, resetting", "nic.driver", "link/eth0", "error", {"what": "tx_timeout"}),
    ("mlx5_core 0000:5e:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x4 link at 0000:5d:00.0 (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)", "nic.driver", "nic/0000:5e:00.0", "warning", {"what": "pcie_limited"}),
    # --- bonds, in kept logs ---
    ("bond0: (slave eth0): link status definitely down, disabling slave", "bond.slaves", "bond/bond0", "warning", {"up": 1, "slaves": 2, "down": "eth0", "degraded": True}),
    ("bond0: link status definitely down for interface eth0, disabling it", "bond.slaves", "bond/bond0", "warning", {"down": "eth0"}),
    ("bonding: bond0: link status definitely down for active interface eth0, disabling it", "bond.slaves", "bond/bond0", "warning", {"down": "eth0"}),
    ("bond0: (slave eth0): link status definitely up, 100000 Mbps full duplex", "bond.slaves", "bond/bond0", "info", {"up": 2, "down": "", "degraded": False}),
    ("bond0: (slave eth2): Releasing backup interface", "bond.slaves", "bond/bond0", "info", {"down": "", "degraded": False}),
    ("bonding: bond0: releasing active interface eth2", "bond.slaves", "bond/bond0", "info", {"down": "", "degraded": False}),
    ("bond0 (unregistering): Released all slaves", "bond.slaves", "bond/bond0", "info", {"degraded": False}),
    ("bond0: now running without any active interface!", "bond.slaves", "bond/bond0", "error", {"up": 0, "degraded": True}),
    # --- PCI Express ---
    ("pcieport 0000:80:01.1: AER: Uncorrected (Fatal) error received: 0000:81:00.0", "pcie.error", "pcie/0000:81:00", "fatal", {"class": "fatal", "port": None} | {"port": "0000:80:01.1"}),
    ("pcieport 0000:80:01.1: PCIE Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)", "pcie.error", "pcie/0000:80:01", "fatal", {"class": "fatal"}),
    ("pcieport 0000:80:01.1: AER: Multiple Uncorrectable (Non-Fatal) error message received from 0000:81:00.0", "pcie.error", "pcie/0000:81:00", "error", {"class": "nonfatal"}),
    ("mlx5_core 0000:81:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)", "pcie.error", "nic/0000:81:00.0", "warning", {"class": "corrected", "layer": "Physical Layer", "role": "Receiver ID"}),
    ("nvidia 0000:3b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)", "pcie.error", "gpu/0000:3b:00", "fatal", {"class": "fatal"}),
    ("nvme 0000:02:00.0: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)", "pcie.error", "pcie/0000:02:00", "warning", {"class": "corrected"}),
    ("nvidia 0000:3b:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)", "pcie.error", "gpu/0000:3b:00", "error", {"class": "nonfatal"}),
    ("nvidia 0000:3b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Inaccessible, (Unregistered Agent ID)", "pcie.error", "gpu/0000:3b:00", "fatal", {"layer": "Inaccessible"}),
    ("pcieport 0000:3a:00.0: AER: device recovery failed", "pcie.error", "pcie/0000:3a:00", "fatal", {"class": "recovery_failed"}),
    ("pcieport 0000:3a:00.0: DPC: containment event, status:0x1f01 source:0x0000", "pcie.error", "pcie/0000:3a:00", "fatal", {"class": "contained"}),
    ("pcieport 0000:16:01.0: DPC: containment event, status:0x1f01: unmasked uncorrectable error detected", "pcie.error", "pcie/0000:16:01", "fatal", {"class": "contained", "address": "0000:16:01.0", "port": None}),
    ("dpc 0000:00:03.0:pcie010: DPC containment event, status:0x1f01 source:0x0000", "pcie.error", "pcie/0000:00:03", "fatal", {"class": "contained"}),
    ("pcieport 0000:16:01.0: DPC: containment event, status:0x1f05, ERR_FATAL received from 0000:17:00.0", "pcie.error", "pcie/0000:17:00", "fatal", {"class": "contained", "address": "0000:17:00.0", "port": "0000:16:01.0"}),
    ("pcieport 0001:16:01.0: DPC: containment event, status:0x1f05 source:0x1708", "pcie.error", "pcie/0001:17:01", "fatal", {"class": "contained", "address": "0001:17:01.0"}),
    # --- memory and processors ---
    ("EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x1f6a2 offset:0x940 grain:32 syndrome:0x0)", "memory.ecc", "node", "warning", {"class": "corrected", "errors": 1, "controller": "MC0", "dimm": "CPU_SrcID#0_MC#0_Chan#1_DIMM#0"}),
    ("EDAC MC3: 2 UE memory scrubbing error on P1-DIMMH1 (channel:0 slot:0 page:0x0 offset:0x0 grain:32)", "memory.ecc", "node", "fatal", {"class": "uncorrected", "errors": 2, "dimm": "P1-DIMMH1"}),
    ("Memory failure: 0x3cf25b: recovery action for dirty LRU page: Recovered", "memory.ecc", "node", "error", {"page": "0x3cf25b"}),
    ("EDAC MC0: 1 CE on CPU_SrcID#1_Ha#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x1f6a2 offset:0x940 grain:32 syndrome:0x0)", "memory.ecc", "node", "warning", {"class": "corrected", "dimm": "CPU_SrcID#1_Ha#0_Chan#0_DIMM#0", "message": None}),
    ("EDAC MC1: 1 UE on unknown label (csrow:2 channel:1 page:0x0 offset:0x0 grain:0)", "memory.ecc", "node", "fatal", {"class": "uncorrected", "dimm": "csrow 2 channel 1"}),
    ("EDAC MC0: 3 CE on mc#0csrow#2channel#1 (csrow:2 channel:1 page:0x8a1 offset:0x40 grain:64 syndrome:0x1d)", "memory.ecc", "node", "warning", {"errors": 3, "dimm": "mc#0csrow#2channel#1"}),
    ('EDAC MC0: CE page 0x3fd1a, offset 0x8c0, grain 0, syndrome 0x94, row 4, channel 1, label "DIMM_B2": amd64_edac', "memory.ecc", "node", "warning", {"class": "corrected", "errors": 1, "controller": "MC0", "dimm": "DIMM_B2"}),
    ('EDAC MC2: UE page 0x0, offset 0x0, grain 4096, row 3, labels ":": i5100', "memory.ecc", "node", "fatal", {"class": "uncorrected", "dimm": "csrow 3"}),
    ('EDAC MC1: CE row 1, channel-a= 0 channel-b= 1 labels "CPU1_A2": Branch=0', "memory.ecc", "node", "warning", {"class": "corrected", "controller": "MC1", "dimm": "CPU1_A2"}),
    ("EDAC MC0: CE - no information available: e752x", "memory.ecc", "node", "warning", {"class": "corrected", "dimm": "unknown"}),
    ("mce: Uncorrected hardware memory error in user-access at edbe201400", "memory.ecc", "node", "error", {"class": "uncorrected", "page": "0xedbe201"}),
    ("[Hardware Error]: CPU:2 (17:31:0) MC17_STATUS[Over|CE|MiscV|-|AddrV|-|-|SyndV|CECC|-|-|-]: 0xdc2040000000011b", "cpu.machine_check", "node", "warning", {"class": "corrected", "cpu": 2, "bank": 17}),
    ("[Hardware Error]: CPU:64 (19:1:1) MC5_STATUS[-|UE|MiscV|-|PCC|SyndV|-|-|-]: 0xbea0000000000108", "cpu.machine_check", "node", "fatal", {"class": "uncorrected", "cpu": 64, "bank": 5}),
    ("[Hardware Error]: CPU:3 (19:1:1) MC17_STATUS[-|-|MiscV|AddrV|-|-|SyndV|-|UECC|Deferred|-|-]: 0x8c2030000000011b", "cpu.machine_check", "node", "error", {"class": "deferred", "cpu": 3, "bank": 17}),
    ("[Hardware Error]: CPU:0\tMC4_STATUS[Over|CE|-|-|AddrV|CECC]: 0xd400400000000813", "cpu.machine_check", "node", "warning", {"class": "corrected", "cpu": 0, "bank": 4}),
    ("mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 9: 9c00004000010090", "cpu.machine_check", "node", "warning", {"class": "corrected", "cpu": 12, "bank": 9}),
    ("mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 1: bf80000000100134", "cpu.machine_check", "node", "fatal", {"class": "uncorrected", "cpu": 3, "bank": 1}),
    ("mce: [Hardware Error]: Machine check events logged", "cpu.machine_check", "node", "warning", {"class": "logged"}),
    ("[Hardware Error]: Corrected error, no action required.", "cpu.machine_check", "node", "warning", {"class": "corrected"}),
    ("[Hardware Error]: Deferred error, no action required.", "cpu.machine_check", "node", "error", {"class": "deferred"}),
    ("[Hardware Error]: Uncorrected, software restartable error.", "cpu.machine_check", "node", "fatal", {"class": "uncorrected"}),
    # --- out of memory ---
    ("Out of memory: Killed process 4711 (python3) total-vm:70312344kB, anon-rss:61203456kB, file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:120000kB oom_score_adj:0", "node.oom_kill", "node", "error", {"pid": 4711, "process": "python3", "scope": "machine", "rss_kb": 61203456, "uid": 1000}),
    ("Out of memory: Killed process 4711 (Web Content), UID 1000, total-vm:7kB, anon-rss:6kB, file-rss:0kB, shmem-rss:0kB", "node.oom_kill", "node", "error", {"process": "Web Content", "uid": 1000, "rss_kb": 6}),
    ("Memory cgroup out of memory: Killed process 812 ((sd-pam)) total-vm:21kB, anon-rss:3kB, file-rss:0kB", "node.oom_kill", "node", "warning", {"pid": 812, "process": "(sd-pam)"}),
    ("Out of memory (oom_kill_allocating_task): Killed process 9 (a) total-vm) total-vm:1kB, anon-rss:2kB", "node.oom_kill", "node", "error", {"process": "a) total-vm"}),
    ("Killed process 4711 (python3) total-vm:70312344kB, anon-rss:61203456kB, file-rss:0kB", "node.oom_kill", "node", "error", {"pid": 4711, "process": "python3", "scope": "machine", "rss_kb": 61203456}),
    ("Memory cgroup out of memory: Killed process 99 (a) b (c) total-vm:1kB, anon-rss:2kB", "node.oom_kill", "node", "warning", {"pid": 99, "scope": "cgroup"}),
    ("Killed process 9823, UID 0, (java) total-vm:70312344kB, anon-rss:61203456kB, file-rss:0kB", "node.oom_kill", "node", "error", {"pid": 9823, "process": "java", "uid": 0, "rss_kb": 61203456}),
    ("Out of Memory: Killed process 4711 (httpd).", "node.oom_kill", "node", "error", {"pid": 4711, "process": "httpd", "scope": "machine"}),
    ("Killed process 4711 (k) total-vm:9kB) total-vm:7kB, anon-rss:6kB, file-rss:4kB", "node.oom_kill", "node", "error", {"process": "k) total-vm:9kB"}),
    # --- disks ---
    ("blk_update_request: I/O error, dev sda, sector 1234 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 0", "disk.error", "disk/sda", "error", {"what": "io_error", "sector": 1234, "operation": "read"}),
    ("I/O error, dev nvme0n1, sector 8 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2", "disk.error", "disk/nvme0n1", "error", {"what": "io_error", "operation": "write"}),
    ("critical medium error, dev sdb, sector 3907029160 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", "disk.error", "disk/sdb", "error", {"what": "medium_error"}),
    ("Buffer I/O error on dev sda1, logical block 0, async page read", "disk.error", "disk/sda1", "error", {"what": "io_error"}),
    ("sd 0:0:1:0: [sdb] tag#12 Sense Key : Medium Error [current] ", "disk.error", "disk/sdb", "error", {"what": "medium_error"}),
    ("sd 0:0:1:0: rejecting I/O to offline device", "disk.error", "disk/0:0:1:0", "fatal", {"what": "offline"}),
    ("ata3.00: failed command: READ FPDMA QUEUED", "disk.error", "disk/ata3.00", "warning", {"what": "ata_error"}),
    ("ata3.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x6 frozen", "disk.error", "disk/ata3.00", "warning", {"what": "ata_error"}),
    ("nvme nvme0: I/O 123 QID 4 timeout, aborting", "disk.error", "disk/nvme0", "error", {"what": "timeout"}),
    ("nvme nvme1: I/O tag 123 (1007) opcode 0x2 (I/O Cmd) QID 4 timeout, aborting req_op:READ(0) size:4096", "disk.error", "disk/nvme1", "error", {"what": "timeout"}),
    ("nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff", "disk.error", "disk/nvme0", "error", {"what": "controller_down"}),
    ("nvme nvme0: Removing after probe failure status: -19", "disk.error", "disk/nvme0", "fatal", {"what": "controller_lost"}),
    ("nvme0n1: Read(0x2) @ LBA 5120, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) MORE DNR", "disk.error", "disk/nvme0n1", "error", {"what": "medium_error"}),
    ("md/raid1:md0: Disk failure on nvme1n1p2, disabling device.", "disk.error", "disk/nvme1n1p2", "fatal", {"what": "raid_failure", "array": "md0"}),
    ("md/raid0:md0: Disk failure on nvme2n1 detected, failing array.", "disk.error", "disk/nvme2n1", "fatal", {"what": "raid_failure", "array": "md0"}),
    ("md/raid0md127: Disk failure on nvme2n1p1 detected, failing array.", "disk.error", "disk/nvme2n1p1", "fatal", {"what": "raid_failure", "array": "md127"}),
    ("md/linearmd3: Disk failure on sdc detected, failing array.", "disk.error", "disk/sdc", "fatal", {"array": "md3"}),
    ("md/raid:md1: Disk failure on sdb1, disabling device.", "disk.error", "disk/sdb1", "fatal", {"array": "md1"}),
    ("md: md0: raid0 array has a missing/failed member", "disk.error", "disk/md0", "fatal", {"what": "raid_failure", "array": "md0"}),
    ("md/raid:md0: Cannot continue operation (2/4 failed).", "disk.error", "disk/md0", "fatal", {"what": "raid_failure", "array": "md0"}),
    ("md/raid:md127: not enough operational devices (3/8 failed)", "disk.error", "disk/md127", "fatal", {"what": "raid_failure", "array": "md127"}),
    ("md/raid10:md0: not enough operational mirrors.", "disk.error", "disk/md0", "fatal", {"what": "raid_failure"}),
    ("md/raid:md127: failed to run raid set.", "disk.error", "disk/md127", "fatal", {"what": "raid_failure"}),
    ("md/raid:md127: cannot start dirty degraded array.", "disk.error", "disk/md127", "fatal", {"what": "raid_failure"}),
    ("md/raid1:md0: active with 1 out of 2 mirrors", "disk.error", "disk/md0", "error", {"what": "raid_degraded", "array": "md0"}),
    ("md/raid10:md0: active with 3 out of 4 devices", "disk.error", "disk/md0", "error", {"what": "raid_degraded"}),
    ("md/raid:md127: raid level 6 active with 7 out of 8 devices, algorithm 2", "disk.error", "disk/md127", "error", {"what": "raid_degraded"}),
    ("md/raid1:md0: sda1: unrecoverable I/O read error for block 1234", "disk.error", "disk/sda1", "error", {"what": "medium_error", "array": "md0", "sector": 1234}),
    ("md/raid:md127: read error not correctable (sector 1234 on sda1).", "disk.error", "disk/sda1", "error", {"what": "medium_error", "array": "md127", "sector": 1234}),
    ("ata1.00: disabled", "disk.error", "disk/ata1.00", "fatal", {"what": "offline"}),
    ("device-mapper: multipath: 253:3: Failing path 8:16.", "disk.error", "disk/dm-3", "warning", {"what": "path_failed", "path": "8:16"}),
    ("device-mapper: multipath: Failing path 65:32.", "disk.error", "disk/65:32", "warning", {"what": "path_failed", "path": "65:32"}),
    ("device-mapper: multipath: 253:3: queue_if_no_path timeout, failing queued IO", "disk.error", "disk/dm-3", "fatal", {"what": "no_path"}),
    ("device-mapper: multipath: queue_if_no_path timeout on 253:3, failing queued IO", "disk.error", "disk/dm-3", "fatal", {"what": "no_path"}),
    ("device-mapper: multipath: mpatha: queue_if_no_path timeout, failing queued IO", "disk.error", "disk/mpatha", "fatal", {"what": "no_path"}),
    ("block nvme0n1: no path available - requeuing I/O", "disk.error", "disk/nvme0n1", "error", {"what": "path_failed"}),
    ("nvme nvme0n1: no path available - requeing I/O", "disk.error", "disk/nvme0n1", "error", {"what": "path_failed"}),
    ("block nvme0n1: no path - failing I/O", "disk.error", "disk/nvme0n1", "fatal", {"what": "no_path"}),
    ("end_request: I/O error, dev sda, sector 123456", "disk.error", "disk/sda", "error", {"what": "io_error", "sector": 123456}),
    ("end_request: critical medium error, dev sda, sector 123456", "disk.error", "disk/sda", "error", {"what": "medium_error"}),
    ("mpatha: remaining active paths: 0", "disk.error", "disk/mpatha", "fatal", {"what": "no_path"}),
    ("block nvme0n1: no usable path - requeuing I/O", "disk.error", "disk/nvme0n1", "error", {"what": "path_failed"}),
    ("block nvme0n1: no available path - failing I/O", "disk.error", "disk/nvme0n1", "fatal", {"what": "no_path"}),
    ("python3: attempt to access beyond end of device\nsda1: rw=2049, sector=3907029160, nr_sectors = 8 limit=3907029120", "disk.error", "disk/sda1", "error", {"what": "beyond_end", "sector": 3907029160}),
    ("attempt to access beyond end of device\nnvme0n1p1: rw=0, want=3907029168, limit=3907029120", "disk.error", "disk/nvme0n1p1", "error", {"what": "beyond_end", "sector": 3907029168}),
    ("sdb: rw=4096, want=8, limit=0", "disk.error", "disk/sdb", "error", {"what": "beyond_end"}),
    # --- filesystems ---
    ("EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0", "filesystem.error", "disk/sda1", "error", {"filesystem": "ext4", "what": "error"}),
    ("EXT4-fs (nvme0n1p2): Remounting filesystem read-only", "filesystem.error", "disk/nvme0n1p2", "fatal", {"what": "unwritable"}),
    ("Aborting journal on device sda1-8.", "filesystem.error", "disk/sda1", "fatal", {"filesystem": "jbd2", "what": "unwritable"}),
    ("JBD2: Detected IO errors while flushing file data on sda1-8", "filesystem.error", "disk/sda1", "error", {"filesystem": "jbd2"}),
    ("XFS (dm-0): Metadata corruption detected at xfs_agf_read_verify+0xb2/0x100 [xfs], xfs_agf block 0x1", "filesystem.error", "disk/dm-0", "error", {"filesystem": "xfs"}),
    ("XFS (nvme1n1): Log I/O Error Detected.  Shutting down filesystem", "filesystem.error", "disk/nvme1n1", "fatal", {"what": "unwritable"}),
    ("XFS (nvme1n1): Filesystem has been shut down due to log error (0x2).", "filesystem.error", "disk/nvme1n1", "fatal", {"what": "unwritable"}),
    ("BTRFS error (device sdc1): bdev /dev/sdc1 errs: wr 1, rd 0, flush 0, corrupt 0, gen 0", "filesystem.error", "disk/sdc1", "error", {"filesystem": "btrfs"}),
    ("BTRFS info (device sdc1): forced readonly", "filesystem.error", "disk/sdc1", "fatal", {"what": "unwritable"}),
    ("BTRFS info (device dm-0: state EA): forced readonly", "filesystem.error", "disk/dm-0", "fatal", {"filesystem": "btrfs", "what": "unwritable"}),
    ("BTRFS error (device nvme0n1p2: state A): Transaction aborted (error -5)", "filesystem.error", "disk/nvme0n1p2", "fatal", {"what": "unwritable"}),
    ("BTRFS: error (device dm-0: state A) in btrfs_commit_transaction:2494: errno=-5 IO failure (Error while writing out transaction)", "filesystem.error", "disk/dm-0", "error", {"what": "error"}),
    ("BTRFS: error (device sdb) in cleanup_transaction:1860: errno=-30 Readonly filesystem", "filesystem.error", "disk/sdb", "fatal", {"what": "unwritable"}),
    ("BTRFS: Transaction aborted (error -28)", "filesystem.error", "node", "fatal", {"filesystem": "btrfs", "what": "unwritable"}),
    ("BTRFS critical (device dm-0: state C): corrupt leaf: root=5 block=29786112 slot=0", "filesystem.error", "disk/dm-0", "error", {"what": "error"}),
    ("NFS: __nfs4_reclaim_open_state: Lock reclaim failed!", "filesystem.error", "node", "error", {"filesystem": "nfs", "what": "locks_lost"}),
    ("nfs4_reclaim_open_state: Lock reclaim failed!", "filesystem.error", "node", "error", {"what": "locks_lost"}),
    ("lockd: failed to reclaim lock for pid 4711 (errno -13, status 13)", "filesystem.error", "node", "error", {"filesystem": "nfs", "what": "locks_lost"}),
    ("VFS: file-max limit 1048576 reached", "node.file_limit", "node", "error", {"limit": 1048576}),
    # --- file servers ---
    ("nfs: server 10.0.0.5 not responding, still trying", "storage.server", "node", "error", {"filesystem": "nfs", "server": "10.0.0.5", "answers": False, "message": "still trying"}),
    ("nfs: server store-1.example not responding, timed out", "storage.server", "node", "error", {"server": "store-1.example", "message": "timed out"}),
    ("nfs: server 10.0.0.5 OK", "storage.server", "node", "info", {"answers": True}),
    ("Lustre: 2314:0:(client.c:2289:ptlrpc_expire_one_request()) work-OST0003-osc-ffff9a: Connection to work-OST0003 (at 10.1.0.9@o2ib) was lost; in progress operations using this service will wait for recovery to complete", "storage.server", "node", "error", {"filesystem": "lustre", "server": "work-OST0003", "answers": False}),
    ("Lustre: work-OST0003-osc-ffff9a: Connection restored to work-OST0003 (at 10.1.0.9@o2ib)", "storage.server", "node", "info", {"server": "work-OST0003", "answers": True}),
    # --- a kernel that hangs or breaks ---
    ("INFO: task python3:4711 blocked for more than 120 seconds.", "kernel.stall", "node", "error", {"what": "hung_task", "process": "python3", "pid": 4711, "for_s": 120.0}),
    ("INFO: task kworker/u256:1:88 blocked for more than 241 seconds.", "kernel.stall", "node", "error", {"process": "kworker/u256:1", "pid": 88}),
    ("watchdog: BUG: soft lockup - CPU#12 stuck for 26s! [python3:4711]", "kernel.stall", "node", "error", {"what": "soft_lockup", "cpu": 12, "pid": 4711, "for_s": 26.0}),
    ("watchdog: Watchdog detected hard LOCKUP on cpu 5", "kernel.stall", "node", "fatal", {"what": "hard_lockup", "cpu": 5}),
    ("watchdog: CPU3: Watchdog detected hard LOCKUP on cpu 3", "kernel.stall", "node", "fatal", {"what": "hard_lockup", "cpu": 3}),
    ("rcu: INFO: rcu_sched detected stalls on CPUs/tasks:", "kernel.stall", "node", "error", {"what": "rcu_stall"}),
    ("BUG: unable to handle page fault for address: ffffb2c000000000", "kernel.oops", "node", "fatal", {"what": "oops"}),
    ("general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1] SMP NOPTI", "kernel.oops", "node", "fatal", {}),
    ("Oops: general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1]", "kernel.oops", "node", "fatal", {}),
    ("general protection fault: 0000 [#1] SMP NOPTI", "kernel.oops", "node", "fatal", {"what": "oops"}),
    ("Unable to handle kernel NULL pointer dereference at virtual address 0000000000000008", "kernel.oops", "node", "fatal", {"what": "oops"}),
    ("Unable to handle kernel paging request at virtual address ffff800011223344", "kernel.oops", "node", "fatal", {"what": "oops"}),
    ("divide error: 0000 [#1] PREEMPT SMP NOPTI", "kernel.oops", "node", "fatal", {"what": "oops"}),
    ("invalid opcode: 0000 [#1]", "kernel.oops", "node", "fatal", {"what": "oops"}),
    ("stack segment: 0000 [#1] SMP", "kernel.oops", "node", "fatal", {}),
    ("double fault: 0000 [#1] SMP NOPTI", "kernel.oops", "node", "fatal", {}),
    ("Internal error: Oops: 96000004 [#1] SMP", "kernel.oops", "node", "fatal", {}),
    ("Internal error: synchronous external abort: 0000000096000410 [#1] SMP", "kernel.oops", "node", "fatal", {}),
    ("Internal error: SP/PC alignment exception: 000000008a000000 [#2] PREEMPT SMP", "kernel.oops", "node", "fatal", {}),
    ("SError Interrupt on CPU3, code 0x00000000be000011 -- SError", "kernel.oops", "node", "fatal", {"what": "oops"}),
    ("Kernel panic - not syncing: Fatal machine check", "kernel.oops", "node", "fatal", {"what": "panic"}),
    # --- crashes within our libraries ---
    ("python3[4711]: segfault at 7f31c0 ip 00007f31d2a1b3c4 sp 00007ffd1a2b error 4 in libnccl.so.2.18.5[7f31d0000000+9a8000] likely on CPU 3 (core 3, socket 0)", "job.crash", "node", "warning", {"what": "segfault", "process": "python3", "pid": 4711, "library": "libnccl.so.2.18.5"}),
    ("traps: python3[4711] general protection fault ip:7f31d2a1b3c4 sp:7ffd1a2b error:0 in libmlx5.so.1.24.44.0[7f31d0000000+9a000]", "job.crash", "node", "warning", {"what": "general protection fault", "library": "libmlx5.so.1.24.44.0"}),
    # --- fabric manager ---
    ("[Jul 09 2026 18:14:07] [ERROR] [tid 12727] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:C1:00.0 physical id 3 port 33", "fabricmanager.error", "nvswitch/0000:c1:00", "fatal", {"what": "nvswitch_fatal", "code": 20034, "link": 33}),
    ("detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id 00000000:08:00.0 physical id 0 port 61", "fabricmanager.error", "nvswitch/0000:08:00", "warning", {"code": 12028}),
    ("[Jul 09 2026 18:14:07] [ERROR] [tid 12727] failed to find the GPU handle 5410063385821516767 in the multicast team request", "fabricmanager.error", "node", "error", {"what": "error"}),
]  # fmt: skip

ORDINARY = [
    "Port module event: module 0, Cable plugged",
    "mlx5_core 0000:5e:00.0: Port module event: module 0, Cable plugged",
    "mlx5_core 0000:5e:00.0: mlx5_pcie_event:304:(pid 268): PCIe slot advertised sufficient power (75W).",
    "mlx5_core 0000:5e:00.0: firmware version: 28.39.1002",
    "pcieport 0000:80:01.1: AER: Corrected error received: 0000:81:00.0",  # the device's own line follows
    "pcieport 0000:80:01.1: AER: enabled with IRQ 128",
    "pcieport 0000:3a:00.0: pciehp: Slot(4): Link Down",
    "pcieport 0000:3a:00.0: pciehp: Link Down",
    "pcieport 0000:3a:00.0: pciehp: Slot(12): Card not present",  # which device it was is not said: its driver says what it lost
    "nvidia: probe of 0000:3b:00.0 rejects match -19",
    "nvidia 0000:3b:00.0: not ready 1023ms after FLR; waiting",
    "nvidia 0000:3b:00.0: ready 2047ms after FLR",
    "nvme 0000:02:00.0: Unable to change power state from D3hot to D0, device inaccessible",
    "NVRM: The NVIDIA probe routine was not called for 1 device(s).",  # another driver has it: a person's choice
    "NVRM: krcWatchdogInit_IMPL: RC watchdog: disabled",
    "mlx5_core 0000:17:00.0 mlx5_0: Port: 1 Link DOWN",
    "ice 0000:31:00.0 ens2f0: Changing Rx descriptor count from 512 to 2048, link down meanwhile",
    "IPv6: ADDRCONF(NETDEV_UP): eth0: link is not ready",
    "mlx5_core 0000:5e:00.0: Link down detected in firmware trace",
    "ata5: SATA link down (SStatus 0 SControl 300)",
    "md/raid1:md0: Operation continuing on 1 devices.",
    "md/raid1:md0: active with 2 out of 2 mirrors",
    "md/raid1:md0: active with 10 out of 10 mirrors",
    "md/raid:md127: raid level 6 active with 8 out of 8 devices, algorithm 2",
    "md/raid:md127: read error corrected (8 sectors at 2048 on sda1)",
    "ata1: disabled by the user",
    "ata1.00: disabled NCQ",
    # Programs of these names: whoever runs one chooses at most 15 characters.
    "divide error: 0[4711]: segfault at 0 ip 0000000000401136 sp 00007ffd1a2b error 6 in a.out[401000+1000]",
    "invalid opcode:[4711]: segfault at 0 ip 0000000000401136 sp 00007ffd1a2b error 6 in a.out[401000+1000]",
    "Internal error:[4711]: segfault at 0 ip 0000000000401136 sp 00007ffd1a2b error 6 in a.out[401000+1000]",
    "SError Interrup[4711]: segfault at 0 ip 0000000000401136 sp 00007ffd1a2b error 6 in a.out[401000+1000]",
    "traps: divide error[4711] trap invalid opcode ip:401136 sp:7ffd1a2b error:0 in a.out[401000+1000]",
    "mlx5_core 0000:5e:00.0: wait_fw_init:199:(pid 7): Waiting for FW initialization, timeout abort in 100s (0xffffffff)",
    "mlx5_core: probe of 0000:5e:00.0 rejects match -19",
    "bond0: (slave eth2): making interface the new active one",
    "md: md0: recovery done.",
    "device-mapper: multipath: 253:3: Reinstating path 8:16.",
    "mpatha: remaining active paths: 3",
    "device-mapper: multipath round-robin: version 1.2.0 loaded",
    "BTRFS info (device dm-0: state M): use zstd compression, level 3",
    "BTRFS warning (device dm-0): duplicate device /dev/sdb devid 1 generation 7 scanned by systemd-udevd (412)",
    "[Hardware Error]: cache level: L3/GEN, tx: GEN, mem-tx: RD",
    "[Hardware Error]: Error Addr: 0x00000003fd1a8c00",
    "[Hardware Error]: IPID: 0x0000009600550f00, Syndrome: 0x5b1c21000a800d01",
    "EDAC amd64: MC0: Giving out device to module amd64_edac controller F19h: DEV 0000:00:18.3 (INTERRUPT)",
    "EDAC MC: Ver: 3.0.0",
    "NFS: state manager: check lease failed on NFSv4 server a with error 10022",
    "oom_reaper: reaped process 4711 (python3), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
    "EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0: DEV 0000:3a:0a.0 (INTERRUPT)",
    "EDAC skx MC3: HANDLING MCE MEMORY ERROR",
    "I/O error, dev sr0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
    "blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
    "nvme nvme0: 16/0/0 default/read/poll queues",
    "nvme nvme0: failed to set APST feature (2)",
    "EXT4-fs (sda1): mounted filesystem 6f1c with ordered data mode. Quota mode: none.",
    "EXT4-fs (sda1): re-mounted 6f1c r/w. Quota mode: none.",
    "XFS (nvme1n1): Ending clean mount",
    "XFS (nvme1n1): Unmounting Filesystem 8d2e",
    "BTRFS info (device sdc1): using free-space-tree",
    "Lustre: Mounted work-client",
    "python3[4711]: segfault at 0 ip 0000000000401136 sp 00007ffd1a2b error 6 in a.out[401000+1000]",
    "nvidia-nvswitch0: open (major=510)",
    "nvidia-nvlink: Nvlink Core is being initialized, major device number 510",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.82.07",
    "[Jul 09 2026 18:14:07] [INFO] [tid 12727] Connected to 1 node.",
    "job 1 says: Out of memory: Killed process 1 (init)",
    "python3 invoked oom-killer: gfp_mask=0x1100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0",
    "INFO: lockdep is turned off.",
    "watchdog: Delayed init of the lockup detector failed: -19",
]  # fmt: skip


def read(text: str) -> list[UnsentEvent]:
    """What a fresh reader says."""
    unsent_events = KernelReader(kept=True).read(text)
    for one in unsent_events:
        kinds.check(one)
        check(one.component)
    return unsent_events


@pytest.mark.parametrize(
    ("text", "kind", "component", "severity", "data"), TABLE, ids=[row[0][:60] for row in TABLE]
)
def test_what_a_line_says(text: str, kind: str, component: str, severity: str, data: dict[str, Any]) -> None:
    """Kind, component, severity and fields of one line; a field None must be absent."""
    (unsent,) = read(text)
    assert (unsent.kind, unsent.component, unsent.severity.value) == (kind, component, severity)
    assert {name: unsent.data.get(name) for name in data} == data
    assert unsent.evidence == text


@pytest.mark.parametrize("text", ORDINARY)
def test_what_only_looks_alike_says_nothing(text: str) -> None:
    """Ordinary lines of the same drivers."""
    assert read(text) == []


@pytest.mark.parametrize("text", [row[0] for row in TABLE if "\n" not in row[0]], ids=lambda text: text[:40])
def test_all_four_encodings_say_the_same(text: str) -> None:
    """One record read from /dev/kmsg, journald, dmesg and dmesg --decode leads to equal facts."""
    answers = []
    for encoded in ordinary.encoded(text, 7).values():
        (line,) = [line for _, line in kernel_text.records([encoded])]
        answers.append(
            [
                (one.kind, one.component, one.severity, one.data)
                for one in LineReader(kept=True).read(line.text)
            ]
        )
    assert answers[0] != []
    assert all(answer == answers[0] for answer in answers)


FIRMWARE = (
    "{1}[Hardware Error]: event severity: recoverable",
    "{1}[Hardware Error]:  Error 0, type: recoverable",
    "{1}[Hardware Error]:   section_type: PCIe error",
    "{1}[Hardware Error]:   device_id: 0000:3a:00.0",
    "bond0: (slave eth0): Enslaving as a backup interface with an up link",
)


def test_every_area_and_kind_has_a_line_here() -> None:
    """A new area without a recording fails."""
    missing = {kind for area in areas(kept=True) for kind in area.kinds} - {row[1] for row in TABLE}
    assert not missing, f"add to TABLE above a line of each of {', '.join(sorted(missing))}"
    for area in areas(kept=True):
        for marker in area.markers:
            assert any(
                marker in text
                for text in [row[0] for row in TABLE]
                + [OOM_WHERE, OOM_WHY, OOM_TASK, RENAMED, *FIRMWARE, *ORDINARY]
            ), marker


# Patterns that read a part of a line, or its head before its words: no marker has to be in them.
PARTS = {
    *(
        "SxidArea._LINK",
        "SxidArea._MORE",
        "SxidArea._ENGINE",
        "NicArea._MODULE",
        "NicArea._COMMAND",
        "PcieArea._NAMED",
    ),
    *("OomArea._RSS", "OomArea._UID", "FabricManagerArea._TROUBLE", "BondArea._HEAD"),
}


WHOLE = [
    (area, name, pattern)
    for area in areas(kept=True)
    for name, pattern in vars(importlib.import_module(type(area).__module__)).items()
    if isinstance(pattern, re.Pattern) and f"{type(area).__name__}.{name}" not in PARTS
]


@pytest.mark.parametrize(
    ("area", "name", "pattern"), WHOLE, ids=[f"{type(row[0]).__name__}.{row[1]}" for row in WHOLE]
)
@settings(max_examples=30, derandomize=True, database=None, phases=[Phase.generate])
@given(data=st.data())
def test_every_form_that_an_area_knows_is_found_by_its_markers(
    area: Area, name: str, pattern: re.Pattern[str], data: st.DataObject
) -> None:
    """A form without a marker would never be read. Texts are made from each pattern, with all that it allows."""
    text = data.draw(st.from_regex(pattern, alphabet=st.characters(codec="ascii")))
    if pattern.match(text):
        assert any(marker in text for marker in area.markers), name


def test_what_distinguishes_facts_is_a_field_of_them() -> None:
    """A misspelt name would make one event of different facts."""
    for area in areas(kept=True):
        fields = {field.name for kind in area.kinds for field in kinds.KINDS[kind].fields}
        assert set(area.distinguishing) <= fields, type(area).__name__


def test_an_sxid_and_its_further_lines_are_one_fact() -> None:
    """The Severity and Data lines belong to the headline; another code's do not."""
    reader = LineReader()
    said = [
        reader.read(NVSWITCH + rest)
        for rest in (
            "12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
            "12028, Severity 0 Engine instance 32 Sub-engine instance 00",
            "12028, Data {0x00140004, 0x00100000, 0x00140004, 0x00000000}",
            "20034, Severity 1 Engine instance 30 Sub-engine instance 00",
        )
    ]
    assert [len(unsent_events) for unsent_events in said] == [1, 0, 0, 1]
    assert (said[3][0].data["code"], said[3][0].data["said"], said[3][0].data["engine"]) == (
        20034,
        "fatal",
        30,
    )


OOM_WHERE = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/system.slice/slurmstepd.scope"
    "/job_815/step_0,task_memcg={group},task=python3,pid=4711,uid=1000"
)
OOM_WHY = "Out of memory: Kill process 4711 (python3) score 917 or sacrifice child"
OOM_TASK = "Task in /slurm/uid_1000/job_4711/step_0 killed as a result of limit of /slurm/uid_1000/job_4711"
RENAMED = "mlx5_core 0000:5e:00.1 ens1f1np1: renamed from eth3"
KILLED = "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:7kB, anon-rss:6kB"


@pytest.mark.parametrize(
    ("group", "component", "job", "unit"),
    [
        ("/system.slice/slurmstepd.scope/job_815/step_0/user/task_0", "job/815", "815", None),
        ("/system.slice/gpuward-agent.service", "node", None, "gpuward-agent.service"),
        ("/user.slice/user-1000.slice", "node", None, None),
    ],
)
def test_an_oom_kill_knows_whose_process_it_was(
    group: str, component: str, job: str | None, unit: str | None
) -> None:
    """The line before names the control group; the fact is said once."""
    reader = LineReader()
    assert reader.read(OOM_WHERE.format(group=group)) == []
    (unsent,) = reader.read(KILLED)
    assert (unsent.component, unsent.data.get("job"), unsent.data.get("unit")) == (component, job, unit)
    assert "job" not in reader.read(KILLED)[0].data  # another process with that number is not this job's


@pytest.mark.parametrize(
    ("why", "scope", "severity"),
    [
        (OOM_WHY, "machine", "error"),
        ("Memory cgroup out of memory: Kill process 4711 (a b) score 1001 or sacrifice child", "cgroup", "warning"),
    ],
)  # fmt: skip
def test_an_oom_kill_of_an_older_kernel_is_two_lines(why: str, scope: str, severity: str) -> None:
    """Why stands in the first; the second may name a child. The next kill has a reason of its own."""
    reader = LineReader()
    assert reader.read(why) == []
    (unsent,) = reader.read("Killed process 4712 (worker) total-vm:7kB, anon-rss:6kB, file-rss:0kB")
    assert (unsent.data["pid"], unsent.data["scope"], unsent.severity.value) == (4712, scope, severity)
    assert reader.read("Killed process 4713 (x) total-vm:7kB")[0].data["scope"] == "machine"


def test_an_oom_kill_of_an_older_kernel_knows_the_job() -> None:
    """The control group stands in a line without a pid; it is the next kill's, and only one's for a limit."""
    for first, component in ((OOM_TASK, "job/4711"), ("x", "node")):
        reader = LineReader()
        assert (
            reader.read(first)
            == reader.read("Memory cgroup out of memory: Kill process 4711 (a) score 1 or sacrifice child")
            == []
        )
        (unsent,) = reader.read("Killed process 4711 (a) total-vm:7kB, anon-rss:6kB, file-rss:0kB")
        assert (unsent.component, unsent.data["scope"]) == (component, "cgroup")
        assert [one.component for one in reader.read("Killed process 4713 (x) total-vm:7kB")] == ["node"]


def test_a_name_does_not_choose_the_process() -> None:
    """A program whose name looks like the fields that follow it."""
    reader = LineReader()
    reader.read(OOM_WHERE.format(group="/kubepods.slice/x").replace("task=python3", "task=a,pid=12,uid=0"))
    assert reader.read(KILLED.replace("python3", "a,pid=12,uid=0"))[0].data["cgroup"] == "/kubepods.slice/x"


AMD_BANK = "[Hardware Error]: CPU:2 (17:31:0) MC17_STATUS[Over|CE|MiscV|-|AddrV|-|-|SyndV|CECC|-|-|-]: 0xdc2040000000011b"


def test_a_machine_check_of_amd_is_one_fact() -> None:
    """A headline, the bank, the address: the headline says it; where it was filtered out the bank does."""
    block = [
        "[Hardware Error]: Corrected error, no action required.",
        AMD_BANK,
        "[Hardware Error]: Error Addr: 0x00000003fd1a8c00",
        "[Hardware Error]: Unified Memory Controller Ext. Error Code: 0, DRAM ECC error.",
    ]
    reader = LineReader()
    assert [len(reader.read(text)) for text in block] == [1, 0, 0, 0]
    assert [len(reader.read(text)) for text in block[1:]] == [1, 0, 0]
    logged = "mce: [Hardware Error]: Machine check events logged"
    assert [len(reader.read(text)) for text in (logged, *block)] == [1, 0, 0, 0, 0]
    worse = "[Hardware Error]: Uncorrected, software restartable error."
    assert [len(reader.read(text)) for text in (logged, worse, *block[1:])] == [1, 1, 0, 0, 0]
    assert [len(reader.read(text)) for text in (block[0], "mlx5_core: something", *block[1:])] == [
        1,
        0,
        0,
        0,
        0,
    ]


def test_a_port_without_a_cable_is_no_fact() -> None:
    """A driver says at boot that it has no link; a port that had one, or of which the log shows no boot, has lost it."""
    down, up = "mlx5_core 0000:5e:00.1 ens1f1np1: Link down", "mlx5_core 0000:5e:00.1 ens1f1np1: Link up"
    reader = LineReader(kept=True)
    said = [[one.data["up"] for one in reader.read(text)] for text in (RENAMED, down, down, up, down)]
    assert said == [[], [], [], [True], [False]]
    assert [one.data["up"] for one in LineReader(kept=True).read(down)] == [False]
    assert LineReader().read(down) == [], "the agent hears rtnetlink"


@pytest.mark.parametrize(
    ("driver", "up", "down"),
    [
        ("ice", "NIC Link is up 100 Gbps Full Duplex, Requested FEC: RS-FEC", "NIC Link is Down"),
        ("bnxt_en", "NIC Link is Up, 25000 Mbps full duplex", "NIC Link is Down"),
        ("i40e", "NIC Link is Up, 10 Gbps Full Duplex", "NIC Link is Down"),
        ("mlx5_core", "Link up", "Link down"),
    ],
)
def test_a_port_keeps_its_link_when_it_is_renamed(driver: str, up: str, down: str) -> None:
    """However long after that it loses it. A port of the same name on another address is another port."""
    renamed = f"{driver} 0000:31:00.0 ens3f0: renamed from eth0"
    for lines in (
        [f"{driver} 0000:31:00.0 eth0: {up}", renamed, f"{driver} 0000:31:00.0 ens3f0: {down}"],
        [renamed, f"{driver} 0000:31:00.0 ens3f0: {up}", f"{driver} 0000:31:00.0 ens3f0: {down}"],
        [renamed, f"{driver} 0000:b1:00.0 ens3f0: {down}"],
    ):
        reader = LineReader(kept=True)
        told = [one for text in lines for one in reader.read(text) if not one.data["up"]]
        assert [one.component for one in told] == ["link/ens3f0"]


PROBED = "nvidia: probe of 0000:3b:00.0 failed with error -1"
FAILED, NONE_LEFT = (
    "NVRM: The NVIDIA probe routine failed for 1 device(s).",
    "NVRM: None of the NVIDIA devices were initialized.",
)


@pytest.mark.parametrize(
    ("lines", "components"),
    [
        ((PROBED, FAILED, NONE_LEFT), ["gpu/0000:3b:00"]),
        ((PROBED, FAILED.replace("1", "2"), NONE_LEFT), ["gpu/0000:3b:00", "node"]),
        ((FAILED, NONE_LEFT), ["node"]),
        ((NONE_LEFT,), ["node"]),
        ((PROBED, FAILED, NONE_LEFT, FAILED, NONE_LEFT), ["gpu/0000:3b:00", "node"]),
    ],
)
def test_the_sum_of_gpus_that_did_not_start_is_told_where_not_all_were_named(
    lines: tuple[str, ...], components: list[str]
) -> None:
    """What the driver says when it has tried all of them is news of those only of which no line was about."""
    reader = LineReader()
    assert [one.component for text in lines for one in reader.read(text)] == components


ANNOUNCED = "pcieport 0000:80:01.1: AER: Uncorrected (Fatal) error received: 0000:81:00.0"
OWN = "nvidia 0000:81:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)"


def said(*texts: str, **how: Any) -> list[tuple[str, str, str]]:
    """Kind, component and class of what a log's lines say."""
    reader = LineReader(**how)
    found = [one for text in texts for one in reader.read(text)]
    return [(one.kind, one.component, str(one.data.get("class", ""))) for one in found]


APEI = "{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 512"


@pytest.mark.parametrize(
    ("severity", "section", "device", "want"),
    [
        ("recoverable", "PCIe error", "0000:3b:00.0", [("pcie.error", "gpu/0000:3b:00", "nonfatal")]),
        ("fatal", "PCIe error", "0000:3b:00.0", [("pcie.error", "gpu/0000:3b:00", "fatal")]),
        ("corrected", "PCIe error", "0000:80:01.1", [("pcie.error", "pcie/0000:80:01", "corrected")]),
        ("info", "PCIe error", "0000:3b:00.0", []),
        ("corrected", "memory error", "", [("cpu.machine_check", "node", "corrected")]),
        ("fatal", "general processor error", "", [("cpu.machine_check", "node", "fatal")]),
        ("recoverable", "unknown, 81212a96-09ed-4996-9471-8d729c8e69ed", "", [("cpu.machine_check", "node", "recoverable")]),
        ("info", "memory error", "", []),
    ],
)  # fmt: skip
def test_a_report_of_the_firmware_is_about_what_its_section_says(
    severity: str, section: str, device: str, want: list[tuple[str, str, str]]
) -> None:
    """APEI: a PCI Express device is no memory. One report is one fact."""
    lines = [
        APEI,
        f"{{1}}[Hardware Error]: event severity: {severity}",
        f"{{1}}[Hardware Error]:  Error 0, type: {severity}",
        f"{{1}}[Hardware Error]:   section_type: {section}",
        "{1}[Hardware Error]:   port_type: 4, root port",
        *([f"{{1}}[Hardware Error]:   device_id: {device}"] if device else ()),
        "{1}[Hardware Error]:   slot: 0",
    ]
    assert said(*lines, drivers={"0000:3b:00.0": "nvidia"}) == want
    assert said(*lines, *lines, drivers={"0000:3b:00.0": "nvidia"}) == 2 * want


@pytest.mark.parametrize(
    ("word", "want"),
    [
        ("Fatal", [("pcie.error", "gpu/0000:81:00", "fatal")]),
        ("Non-Fatal", [("pcie.error", "gpu/0000:81:00", "nonfatal"), ("pcie.error", "gpu/0000:81:00", "recovery_failed")]),
    ],
)  # fmt: skip
def test_a_failed_recovery_is_the_devices(word: str, want: list[tuple[str, str, str]]) -> None:
    """The port speaks of the device whose error it announced: after a fatal error that is nothing new."""
    lines = (ANNOUNCED.replace("Fatal", word), "pcieport 0000:80:01.1: AER: device recovery failed")
    assert said(*lines, drivers={"0000:81:00.0": "nvidia"}) == want


@pytest.mark.parametrize(
    ("said_first", "want"),
    [
        ("status:0x1f01 source:0x0000", "pcie/0000:16:01"),
        ("status:0x1f01: unmasked uncorrectable error detected", "pcie/0000:16:01"),
        ("status:0x1f05 source:0x1700", "gpu/0000:17:00"),
        ("status:0x1f05, ERR_FATAL received from 0000:17:00.0", "gpu/0000:17:00"),
    ],
)
@pytest.mark.parametrize("word", ["Fatal", "Non-Fatal"])
def test_a_containment_is_one_fact(said_first: str, word: str, want: str) -> None:
    """The port cuts off what is below it, reports what it saw, and says that nothing recovered; what comes later is new."""
    lines = [
        f"pcieport 0000:16:01.0: DPC: containment event, {said_first}",
        "pcieport 0000:16:01.0: DPC: unmasked uncorrectable error detected",
        f"pcieport 0000:16:01.0: PCIe Bus Error: severity=Uncorrectable ({word}), type=Transaction Layer, (Receiver ID)",
        "pcieport 0000:16:01.0:   device [8086:352a] error status/mask=00004000/00100000",
        "nvidia 0000:17:00.0: AER: can't recover (no error_detected callback)",
        "pcieport 0000:16:01.0: AER: device recovery failed",
    ]
    drivers = {"0000:17:00.0": "nvidia"}
    assert said(*lines, drivers=drivers) == [("pcie.error", want, "contained")]
    assert said(*lines, *lines, drivers=drivers) == [("pcie.error", want, "contained")] * 2


def test_a_bond_counts_the_slaves_that_its_log_names() -> None:
    """From their start to the loss of the last one, and back."""
    reader = LineReader(kept=True)
    lines = [
        *(f"bond0: (slave eth{n}): Enslaving as a backup interface with an up link" for n in range(3)),
        "bond0: (slave eth1): link status definitely down, disabling slave",
        "bond0: (slave eth2): making interface the new active one",
        "bond0: now running without any active interface!",
        *(f"bond0: (slave eth{n}): link status definitely up, 100000 Mbps full duplex" for n in range(3)),
    ]
    told = [one.data for line in lines for one in reader.read(line)]
    assert [(data["up"], data["slaves"], data["down"]) for data in told] == [
        (2, 3, "eth1"), (0, 3, "eth0,eth1,eth2"), (1, 3, "eth1,eth2"), (2, 3, "eth2"), (3, 3, ""),
    ]  # fmt: skip
    assert LineReader().read(lines[3]) == [], "the agent reads /proc/net/bonding"


def test_a_slave_that_is_released_is_no_slave_any_more() -> None:
    """On purpose, or with its card: what its link was says nothing of the bond, which is whole without it."""
    reader = LineReader(kept=True)
    lines = [
        *(f"bond0: (slave eth{n}): Enslaving as a backup interface with an up link" for n in range(3)),
        "bond0: (slave eth2): link status definitely down, disabling slave",
        "bond0: (slave eth2): Releasing backup interface",
        "bond0 (unregistering): (slave eth1): Releasing active interface",
        "bond0 (unregistering): Released all slaves",
        "bond0: (slave eth1): link status definitely down, disabling slave",
    ]
    told = [one.data for line in lines for one in reader.read(line)]
    assert [(data["up"], data["slaves"], data["down"]) for data in told] == [
        (2, 3, "eth2"), (2, 2, ""), (2, 2, ""), (2, 2, ""), (1, 2, "eth1"),
    ]  # fmt: skip


def test_an_aer_report_is_one_fact() -> None:
    """The port announces it, the device reports it. Whose it is is known from the machine, or from the log."""
    for reader, component in (
        (LineReader(), "pcie/0000:81:00"),
        (LineReader(drivers={"0000:81:00.0": "nvidia"}), "gpu/0000:81:00"),
        (LineReader(drivers=pci_drivers(["[ 1.0] nvidia 0000:81:00.0: enabling device (0000 -> 0002)", "x"])), "gpu/0000:81:00"),
    ):  # fmt: skip
        said = [[one.component for one in reader.read(text)] for text in (ANNOUNCED, OWN)]
        assert said == [[component], []]
        assert [one.component for one in reader.read(OWN)] == ["gpu/0000:81:00"], "one that was not announced"
        assert [one.component for one in reader.read(ANNOUNCED)] == ["gpu/0000:81:00"], "it has learnt"
        assert [len(reader.read(text)) for text in (OWN.replace("Fatal", "Non-Fatal"), OWN)] == [1, 0]


def test_only_so_many_announcements_are_remembered() -> None:
    """Of devices that never report anything."""
    reader = LineReader()
    for number in range(200):
        reader.read(ANNOUNCED.replace("81:00.0", f"{number:02x}:00.0"))
    assert len(reader.read(OWN.replace("0000:81:00.0", "0000:01:00.0"))) == 1
    assert reader.read(OWN.replace("0000:81:00.0", "0000:c7:00.0")) == []


HEADS = sorted(
    {row[0][: len(row[0]) // 2] for row in TABLE}
    | {marker for area in areas(kept=True) for marker in area.markers}
)


@given(st.sampled_from(HEADS), st.text(max_size=200))
def test_no_text_breaks_a_reader(head: str, text: str) -> None:
    """Whatever follows the beginning of a real line, reading returns, and what it says is declared."""
    read(head + text)
    read(text + head)


@given(st.sampled_from([row[0] for row in TABLE]), st.data())
def test_a_damaged_line_breaks_no_reader(text: str, data: st.DataObject) -> None:
    """Cut, doubled and overwritten pieces of real lines."""
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, len(text)))
    patch = data.draw(st.text(alphabet="0123456789abcdefx:.,()[]# {}=\n", max_size=20))
    read(text[:begin] + patch + text[end:])


@pytest.mark.parametrize("filler", ["0", "a ", ":", "error ", "(", "[", "x,", "\n", "0000:5e:00.0 ", "- "])
def test_a_long_line_costs_no_time(filler: str) -> None:
    """The worst repeats after every real beginning: each record is read in a moment."""
    reader = KernelReader()
    for head in HEADS:
        text = head + filler * (8000 // len(filler))
        began = time.thread_time()
        reader.read(text)
        assert (took_s := time.thread_time() - began) < 0.1 or took_s / slowness() < 0.1, head
