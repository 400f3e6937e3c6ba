import Glibc
import SystemCalls

/// OpenStack Swift with its interface of S3, from Debian's packages: four programs on the loopback interface, which store
/// objects in a temporary directory. Unlike SeaweedFS it compares the content of an object with its signed digest.
package final class OpenStackSwift: StorageEngine {
    private static let servers = ["account", "container", "object"]

    package let endpoint: String
    package let environment = ["AWS_ACCESS_KEY_ID": "test:ACCESSKEY", "AWS_SECRET_ACCESS_KEY": "SECRETKEY"]
    private let directory: TemporaryDirectory
    private let processes: [ChildProcess]
    private let buckets = Counter()

    /// Starts the programs and waits until they respond.
    package init() throws {
        let directory = try TemporaryDirectory()
        self.directory = directory
        try FileDescriptor.makeDirectories(FilePath(directory.path + "/devices/d1"))
        let common = "swift_dir = \(directory.path)\nbind_ip = 127.0.0.1\nworkers = 0\nuser = root\n"
        var ports: [UInt16] = []
        var processes: [ChildProcess] = []
        for name in Self.servers {
            let port = try FixedPort.next()
            let ring = directory.path + "/\(name).builder"
            for step in [["create", "4", "1", "1"], ["add", "r1z1-127.0.0.1:\(port)/d1", "1"], ["rebalance"]] {
                let builder = try ChildProcess("/usr/bin/swift-ring-builder", [ring] + step)
                guard try builder.awaitEnding() == .exited(0) else { throw TestFailure(builder.errorOutput) }
            }
            let text = """
                [DEFAULT]
                \(common)bind_port = \(port)
                devices = \(directory.path)/devices
                mount_check = false
                disable_fallocate = true
                [pipeline:main]
                pipeline = \(name)-server
                [app:\(name)-server]
                use = egg:swift#\(name)
                """
            let path = try directory.file(name + ".conf", Array(text.utf8))
            processes.append(try ChildProcess("/usr/bin/swift-\(name)-server", [path]))
            ports.append(port)
        }
        let port = try FixedPort.next()
        let text = """
            [DEFAULT]
            \(common)bind_port = \(port)
            [pipeline:main]
            pipeline = catch_errors cache listing_formats bulk s3api tempauth slo proxy-server
            [app:proxy-server]
            use = egg:swift#proxy
            account_autocreate = true
            [filter:catch_errors]
            use = egg:swift#catch_errors
            [filter:cache]
            use = egg:swift#memcache
            memcache_servers = 127.0.0.1:1
            [filter:listing_formats]
            use = egg:swift#listing_formats
            [filter:bulk]
            use = egg:swift#bulk
            [filter:slo]
            use = egg:swift#slo
            [filter:s3api]
            use = egg:swift#s3api
            location = us-east-1
            [filter:tempauth]
            use = egg:swift#tempauth
            user_test_ACCESSKEY = SECRETKEY .admin
            """
        let path = try directory.file("proxy.conf", Array(text.utf8))
        processes.append(try ChildProcess("/usr/bin/swift-proxy-server", [path]))
        self.processes = processes
        endpoint = "http://127.0.0.1:\(port)"
        let isReady: Bool? = try pollUntil(within: .seconds(60)) {
            if let ended = processes.first(where: { $0.ending != nil }) { throw TestFailure(ended.errorOutput) }
            return (ports + [port]).contains { ListeningSocket.isFree(port: $0) } ? nil : true
        }
        guard isReady == true else { throw TestFailure(processes.map(\.errorOutput).joined()) }
    }

    deinit { for process in processes { process.kill(SIGKILL) } }

    package func newBucket() throws -> String { try createBucket("bucket-\(buckets.next())") }
}
