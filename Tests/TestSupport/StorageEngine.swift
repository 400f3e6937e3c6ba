import Glibc

/// A server of an object storage with the interface of Amazon S3, on the loopback interface.
package protocol StorageEngine: Sendable {
    /// The URL of the interface of S3.
    var endpoint: String { get }
    /// The variables with the keys of a user.
    var environment: [String: String] { get }

    /// Creates a bucket, and returns its URI.
    func newBucket() throws -> String
}

extension StorageEngine {
    /// Creates a bucket with curl.
    func createBucket(_ name: String) throws -> String {
        func encoded(_ variable: String) -> String { environment[variable]?.replacing(":", with: "%3A") ?? "" }
        // The identifier of a key of OpenStack Swift contains a colon, so it is part of the URL, where it is encoded.
        let keys = encoded("AWS_ACCESS_KEY_ID") + ":" + encoded("AWS_SECRET_ACCESS_KEY")
        let url = endpoint.replacing("://", with: "://\(keys)@") + "/" + name
        let request = try ChildProcess(
            "/usr/bin/curl",
            [
                "-sSf", "-X", "PUT", "--aws-sigv4", "aws:amz:us-east-1:s3", "-H",
                "x-amz-content-sha256: UNSIGNED-PAYLOAD", url,
            ])
        guard try request.awaitEnding() == .exited(0) else { throw TestFailure(request.errorOutput) }
        return "s3://\(name)?endpoint=\(endpoint)"
    }
}

/// The servers of `make test-engines`, besides SeaweedFS.
package enum OtherEngine: String, CaseIterable, Sendable {
    case openStackSwift = "OpenStack Swift"
    case ceph = "Ceph"

    /// Whether the tests with these servers run: the variable ONWARD_ENGINES is 1.
    package static let isRequired = getenv("ONWARD_ENGINES").map { String(cString: $0) } == "1"

    /// The servers that tests use.
    package static let used = isRequired ? allCases : []

    package func start() throws -> any StorageEngine {
        switch self {
        case .openStackSwift: try OpenStackSwift()
        case .ceph: try Ceph()
        }
    }
}
