import Glibc
import SystemCalls

/// Ceph with its interface of S3, from Debian's packages: one monitor, one server of objects and one gateway on the loopback
/// interface, which store objects in a sparse file of a temporary directory.
package final class Ceph: StorageEngine {
    package let endpoint: String
    package let environment = ["AWS_ACCESS_KEY_ID": "ACCESSKEY", "AWS_SECRET_ACCESS_KEY": "SECRETKEY"]
    private let directory: TemporaryDirectory
    private let processes = Monitor<[ChildProcess]>([])
    private let buckets = Counter()

    /// Starts the programs and waits until they respond.
    package init() throws {
        directory = try TemporaryDirectory()
        let (monitor, gateway) = try (FixedPort.next(), FixedPort.next())
        endpoint = "http://127.0.0.1:\(gateway)"
        let root = directory.path
        let (cluster, disk) = ("0e6f7c7a-5a3e-4f1e-9c43-6d2f0f6a1b01", "0e6f7c7a-5a3e-4f1e-9c43-6d2f0f6a1b02")
        // Without cephx the gateway never connects.
        let configuration = """
            [global]
            fsid = \(cluster)
            mon initial members = a
            mon host = [v2:127.0.0.1:\(monitor)/0]
            public network = 127.0.0.0/8
            ms bind ipv6 = false
            auth cluster required = cephx
            auth service required = cephx
            auth client required = cephx
            keyring = \(root)/keyring
            run dir = \(root)
            admin socket = \(root)/$name.asok
            pid file = \(root)/$name.pid
            log file = \(root)/$name.log
            mon data = \(root)/mon
            osd data = \(root)/osd
            mon data avail warn = 1
            mon data avail crit = 1
            osd pool default size = 1
            osd pool default min size = 1
            osd pool default pg num = 1
            osd pool default pgp num = 1
            osd crush chooseleaf type = 0
            mon allow pool size one = true
            osd objectstore = bluestore
            bluestore block size = 4294967296
            osd memory target = 939524096
            [client.rgw.a]
            rgw frontends = beast endpoint=127.0.0.1:\(gateway)
            rgw run sync thread = false

            """
        let file = try directory.file("ceph.conf", Array(configuration.utf8))
        let keys: [(String, [String])] = [
            ("mon.", ["mon", "allow *"]), ("client.admin", ["mon", "allow *", "osd", "allow *", "mgr", "allow *"]),
            ("osd.0", ["mon", "allow profile osd", "osd", "allow *"]),
            ("client.rgw.a", ["mon", "allow rw", "osd", "allow rwx"]),
        ]
        for (index, (name, capabilities)) in keys.enumerated() {
            var arguments = [root + "/keyring", "--gen-key", "-n", name]
            if index == 0 { arguments.append("-C") }
            for pair in stride(from: 0, to: capabilities.count, by: 2) {
                arguments += ["--cap", capabilities[pair], capabilities[pair + 1]]
            }
            try Self.run("ceph-authtool", arguments)
        }
        let map = root + "/map"
        try Self.run(
            "monmaptool", ["--create", "--addv", "a", "[v2:127.0.0.1:\(monitor)]", "--fsid", cluster, map])
        let common = ["-c", file]
        try Self.run("ceph-mon", common + ["--mkfs", "-i", "a", "--monmap", map, "--keyring", root + "/keyring"])
        try start("ceph-mon", common + ["-i", "a", "-f"])
        try Self.run("ceph", common + ["auth", "import", "-i", root + "/keyring"])
        try Self.run("ceph", common + ["osd", "new", disk])
        try FileDescriptor.makeDirectories(FilePath(root + "/osd"))
        try Self.run("ceph-osd", common + ["-i", "0", "--mkfs", "--osd-uuid", disk, "--monmap", map])
        try start("ceph-osd", common + ["-i", "0", "-f"])
        try Self.run(
            "radosgw-admin",
            common + [
                "-n", "client.admin", "user", "create", "--uid=test", "--display-name=test", "--access-key=ACCESSKEY",
                "--secret=SECRETKEY",
            ])
        try start("radosgw", common + ["-n", "client.rgw.a", "-f"])
        let isReady: Bool? = try pollUntil(within: .seconds(120)) {
            for process in processes.withLock({ $0 }) where process.ending != nil {
                throw TestFailure(process.errorOutput)
            }
            return ListeningSocket.isFree(port: gateway) ? nil : true
        }
        guard isReady == true else { throw TestFailure("the gateway does not listen") }
    }

    deinit { for process in processes.withLock({ $0 }) { process.kill(SIGKILL) } }

    package func newBucket() throws -> String { try createBucket("bucket-\(buckets.next())") }

    private func start(_ program: String, _ arguments: [String]) throws {
        let process = try ChildProcess("/usr/bin/" + program, arguments)
        processes.withLock { $0.append(process) }
    }

    private static func run(_ program: String, _ arguments: [String]) throws {
        let process = try ChildProcess("/usr/bin/" + program, arguments)
        let ending = try process.awaitEnding(within: .seconds(120))
        guard ending == .exited(0) else { throw TestFailure("\(program): \(ending): \(process.errorOutput)") }
    }
}
