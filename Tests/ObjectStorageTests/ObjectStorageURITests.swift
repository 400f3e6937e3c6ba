import Testing

@testable import ObjectStorage

@Suite("URIs of object storages")
struct ObjectStorageURITests {
    @Test("The bucket is a part of the host with Amazon S3, and of the path with another endpoint")
    func styles() throws {
        let amazon = try ObjectStorageURI(parsing: "s3://bucket/one/two?region=eu-west-1")
        #expect(amazon.root == "https://bucket.s3.eu-west-1.amazonaws.com/")
        #expect(amazon.path(of: "key") == "/one/two/key")
        #expect(amazon.path(of: nil) == "/")
        let own = try ObjectStorageURI(parsing: "s3://bucket?endpoint=http://127.0.0.1:9000/")
        #expect(own.root == "http://127.0.0.1:9000/")
        #expect(own.path(of: "key") == "/bucket/key")
        #expect(own.path(of: nil) == "/bucket")
        #expect(own.region == "us-east-1")
        let host = try ObjectStorageURI(parsing: "s3://bucket?endpoint=https://[::1]:443&style=host")
        #expect(host.host == "bucket.[::1]")
        let other = try ObjectStorageURI(
            parsing: "s3://bucket?endpoint=http://10.0.0.1:9000&public-endpoint=https://files.example")
        #expect(other.root == "http://10.0.0.1:9000/" && other.publicRoot == "https://files.example/")
        #expect(own.publicRoot == own.root && amazon.publicRoot == amazon.root)
        // No certificate is valid for such a name.
        let dotted = try ObjectStorageURI(parsing: "s3://a.bucket?region=cn-north-1")
        #expect(dotted.root == "https://s3.cn-north-1.amazonaws.com.cn/")
        #expect(dotted.path(of: "k") == "/a.bucket/k")
    }

    @Test("Values can be percent-encoded, and a prefix may end with a slash")
    func decoding() throws {
        let uri = try ObjectStorageURI(
            parsing: "s3://bucket/a%20b/?region=auto&endpoint=https%3A%2F%2Fs3.example%3A8443&ca-file=/etc/ca%26b.pem")
        #expect(uri.prefix == "a b/")
        #expect(uri.root == "https://s3.example:8443/")
        #expect(uri.caFile == "/etc/ca&b.pem")
        #expect("\(uri)" == "s3://bucket/a b/ at s3.example:8443")
    }

    @Test(
        "A mistake is described without a part of the URI that may be a secret",
        arguments: [
            "https://bucket", "s3://", "s3://UPPER?region=a", "s3://bucket", "s3://bucket?region=",
            "s3://bucket/a//b?region=a", "s3://bucket/../b?region=a", "s3://bucket/a%2F..?region=a",
            "s3://bucket?region=a&region=b", "s3://bucket?region=a&style=other", "s3://bucket?region=a&ca-file=",
            "s3://bucket?endpoint=ftp://host", "s3://bucket?endpoint=http://host/path", "s3://bucket?region=a%zz",
            "s3://bucket?endpoint=http://host%3Fx", "s3://bucket?region=a#x", "s3://bucket?region=a%0A",
            "s3://KEY:SECRET@bucket?region=a", "s3://bucket?region=a&secret=SECRET",
            "s3://bucket?region=a&AWS_SECRET_ACCESS_KEY=SECRET", "s3://bucket?endpoint=https://KEY:SECRET@host",
            "s3://bucket?region=a&SECRET",
            "s3://bucket?region=a&public-endpoint=files.example",
            "s3://bucket?region=a&public-endpoint=https://K:SECRET@h",
        ])
    func mistakes(_ text: String) {
        do {
            _ = try ObjectStorageURI(parsing: text)
            Issue.record("no error")
        } catch {
            #expect(!"\(error)".contains("SECRET") || "\(error)".contains("AWS_SECRET_ACCESS_KEY"))
            #expect(!text.contains("SECRET") || "\(error)".contains("AWS_SHARED_CREDENTIALS_FILE"))
            #expect(!"\(error)".contains("KEY:"))
        }
    }
}
