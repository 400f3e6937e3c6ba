import HTTPSemantics
import Testing

@testable import ObjectStorage

/// Requests and signatures that AWS has published: the suite of signature version 4, and the examples in the reference
/// of Amazon S3.
@Suite("Signatures of requests")
struct RequestSignatureTests {
    struct Example: Sendable, CustomTestStringConvertible {
        var name: String
        var method = Method.get
        var path = "/"
        var query: [(String, String)] = []
        var fields: [(String, String)] = []
        var content = ""
        var signature: String

        var testDescription: String { name }
    }

    private static let unreserved = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

    static let suiteExamples = [
        Example(
            name: "get-vanilla", signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Example(
            name: "post-vanilla", method: .post,
            signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        Example(
            name: "get-vanilla-empty-query-key", query: [("Param1", "value1")],
            signature: "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"),
        Example(
            name: "get-vanilla-query-order-key-case", query: [("Param2", "value2"), ("Param1", "value1")],
            signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        Example(
            name: "get-vanilla-query-order-value", query: [("Param1", "value2"), ("Param1", "value1")],
            signature: "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694"),
        Example(
            name: "get-vanilla-query-order-encoded",
            query: [("Param-3", "Value3"), ("Param", "Value2"), ("\u{1234}", "Value1")],
            signature: "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"),
        Example(
            name: "get-vanilla-query-unreserved", query: [(unreserved, unreserved)],
            signature: "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"),
        Example(
            name: "get-vanilla-utf8-query", query: [("\u{1234}", "bar")],
            signature: "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
        Example(
            name: "get-unreserved", path: "/" + unreserved,
            signature: "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
        Example(
            name: "get-utf8", path: "/\u{1234}",
            signature: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
    ]

    @Test("A request of the suite of signature version 4 gets the published signature", arguments: suiteExamples)
    func ofSuite(_ example: Example) {
        let keys = AccessKeys(identifier: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
        // 2015-08-30T12:36:00Z
        let signature = RequestSignature(keys, region: "us-east-1", service: "service", at: 1_440_938_160)
        #expect(signature.time == "20150830T123600Z")
        let request = CanonicalRequest(
            method: example.method, path: example.path, query: example.query.map { (name: $0.0, value: $0.1) },
            fields: [("Host", "example.amazonaws.com"), ("X-Amz-Date", signature.time)],
            contentDigest: CanonicalRequest.emptyDigest)
        #expect(
            signature.authorization(for: request)
                == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
                + "SignedHeaders=host;x-amz-date, Signature=\(example.signature)")
    }

    static let storageExamples = [
        Example(
            name: "GET Object with a range", path: "/test.txt", fields: [("Range", "bytes=0-9")],
            signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        Example(
            name: "PUT Object with a special character in the key", method: .put, path: "/test$file.text",
            fields: [("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")],
            content: "Welcome to Amazon S3.",
            signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        Example(
            name: "GET Bucket Lifecycle", query: [("lifecycle", "")],
            signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        Example(
            name: "Get Bucket (List Objects)", query: [("prefix", "J"), ("max-keys", "2")],
            signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ]

    private static let keys = AccessKeys(
        identifier: "AKIAIOSFODNN7EXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    // 2013-05-24T00:00:00Z
    private static let time: Int64 = 1_369_353_600

    @Test("An example of the reference of Amazon S3 gets the published signature", arguments: storageExamples)
    func ofStorage(_ example: Example) {
        let signature = RequestSignature(Self.keys, region: "us-east-1", at: Self.time)
        let digest = Array(example.content.utf8).sha256.hexadecimal
        let fields = [
            ("Host", "examplebucket.s3.amazonaws.com"), ("x-amz-content-sha256", digest),
            ("x-amz-date", signature.time),
        ]
        let request = CanonicalRequest(
            method: example.method, path: example.path, query: example.query.map { (name: $0.0, value: $0.1) },
            fields: (fields + example.fields).map { (name: $0.0, value: $0.1) }, contentDigest: digest)
        #expect(signature.signature(of: request) == example.signature)
    }

    @Test("The example of a presigned URL gets the published URL")
    func presigned() throws {
        let uri = try ObjectStorageURI(
            parsing: "s3://examplebucket?region=us-east-1&endpoint=https://s3.amazonaws.com&style=host")
        let credentials = ObjectCredentials(environment: [
            "AWS_ACCESS_KEY_ID": Self.keys.identifier, "AWS_SECRET_ACCESS_KEY": Self.keys.secret,
        ])
        let client = S3Client(uri, credentials, clock: { Self.time })
        let url = try #require(try client.presignedURL("test.txt", validFor: .seconds(86_400)))
        #expect(
            url == "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
                + "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
                + "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400"
                + "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
                + "&X-Amz-SignedHeaders=host")
    }

    @Test("The canonical request is that of the example, with values without surplus spaces")
    func canonicalRequest() {
        let request = CanonicalRequest(
            method: .get, path: "/a b/\u{e9}+%2F", query: [("b", "/"), ("a", "")],
            fields: [("X-Amz-Meta", "  a   b "), ("Host", "h")], contentDigest: "D")
        #expect(request.text == "GET\n/a%20b/%C3%A9%2B%252F\na=&b=%2F\nhost:h\nx-amz-meta:a b\n\nhost;x-amz-meta\nD")
        #expect(request.target == "/a%20b/%C3%A9%2B%252F?a=&b=%2F")
    }
}
