import SystemCalls
import TestSupport
import Testing

@testable import ObjectStorage

/// The texts that operators get, and the documents of the storage.
@Suite("Responses of object storages")
struct StorageErrorTests {
    private func error(
        _ response: String, environment: [String: String] = [:],
        clock: @escaping @Sendable () -> Int64 = { 1_369_353_600 }
    ) async throws -> String {
        try await onThread {
            let storage = try ScriptedStorage([.keep(response)])
            defer { #expect(storage.requests.count == 1) }
            let client = try storage.client(environment: environment, clock: clock)
            do {
                try client.put("k", [1])
                return "no error"
            } catch {
                return "\(error)"
            }
        }
    }

    @Test("A redirection is not followed, and names the endpoint")
    func redirection() async throws {
        let other = try ScriptedStorage([.keep(ScriptedStorage.response("200 OK"))])
        let text = try await error(
            ScriptedStorage.error(
                "307 Temporary Redirect", "TemporaryRedirect",
                fields: ["Location: http://127.0.0.1:\(other.port)/bucket/k"],
                "<Endpoint>bucket.s3-eu-west-3.amazonaws.com</Endpoint><Message>Please re-send</Message>"))
        #expect(
            text
                == "the object storage has refused the request with status 307 TemporaryRedirect: the storage redirects to "
                + "bucket.s3-eu-west-3.amazonaws.com, which is not followed; set endpoint= accordingly: Please re-send")
        #expect(other.connections == 0)
    }

    @Test("A wrong region names the right one")
    func region() async throws {
        let moved = try await error(
            ScriptedStorage.error(
                "301 Moved Permanently", "PermanentRedirect", fields: ["x-amz-bucket-region: eu-west-1"]))
        #expect(moved.contains("the bucket is in the region eu-west-1; set region="))
        let malformed = try await error(
            ScriptedStorage.error("400 Bad Request", "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"))
        #expect(malformed.contains("the bucket is in the region eu-west-1; set region="))
    }

    @Test("If the clocks differ, the text states by how much")
    func clocks() async throws {
        let skewed = ScriptedStorage.error(
            "403 Forbidden", "RequestTimeTooSkewed", fields: ["Date: Fri, 24 May 2013 00:20:00 GMT"],
            "<Message>The difference is too large.</Message>")
        let text = try await error(skewed)
        #expect(
            text
                == "the object storage has refused the request with status 403 RequestTimeTooSkewed: the clock of this "
                + "machine is 1200 s behind the clock of the storage; synchronize it: The difference is too large.")
        #expect(try await error(skewed, clock: { 1_369_353_600 + 1800 }).contains("600 s ahead of the clock"))
        #expect(
            try await error(ScriptedStorage.error("403 Forbidden", "RequestTimeTooSkewed")).contains(
                "the clocks of this machine and of the storage differ"))
        let other = ScriptedStorage.error(
            "403 Forbidden", "AccessDenied", fields: ["Date: Fri, 24 May 2013 00:00:02 GMT"])
        #expect(try await !error(other).contains("clock"))
    }

    @Test("A token that the storage repeats is in no text")
    func secrecy() async throws {
        let text = try await error(
            ScriptedStorage.error("403 Forbidden", "InvalidToken", "<Message>Bad TOKEN-VALUE</Message>"),
            environment: [
                "AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SESSION_TOKEN": "TOKEN-VALUE",
            ])
        #expect(text == "the object storage has refused the request with status 403 InvalidToken")
    }

    @Test("Without credentials nothing is sent")
    func noCredentials() async throws {
        try await onThread {
            let storage = try ScriptedStorage([.keep("")])
            let client = try storage.client(environment: ["AWS_ACCESS_KEY_ID": "A"])
            #expect {
                try client.put("k", [])
            } throws: { error in
                "\(error)" == "there are no credentials: AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not"
            }
            #expect(storage.connections == 0)
        }
    }

    @Test("A token is sent and signed")
    func token() async throws {
        try await onThread {
            let storage = try ScriptedStorage([.keep(ScriptedStorage.response("200 OK"))])
            let environment = ["AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S", "AWS_SESSION_TOKEN": "T/+="]
            let client = try storage.client(environment: environment)
            try client.put("k", [])
            #expect(storage.requests[0].fields["x-amz-security-token"] == "T/+=")
            #expect(storage.requests[0].fields["authorization"]?.contains(";x-amz-security-token,") == true)
            #expect(
                try client.presignedURL("k", validFor: .seconds(1))?.contains("&X-Amz-Security-Token=T%2F%2B%3D&")
                    == true)
        }
    }

    @Test("A list continues with the token of the storage, and keys are decoded")
    func list() async throws {
        try await onThread {
            let storage = try ScriptedStorage([
                .keep(
                    Self.page(
                        "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
                            + "<NextContinuationToken>a/b=</NextContinuationToken>", ["p/a+b%2Bc"])),
                .keep(Self.page("<IsTruncated>false</IsTruncated>", ["p/x+y%2B&amp;"])),
            ])
            let listings = try storage.client().list(prefix: "a b", after: "q", limit: 7)
            #expect(
                listings == [
                    ObjectListing(key: "a b+c", size: 5, lastModified: 1_369_353_600),
                    ObjectListing(key: "x+y%2B&", size: 5, lastModified: 1_369_353_600),
                ])
            #expect(
                storage.requests.map(\.target) == [
                    "/bucket?encoding-type=url&list-type=2&max-keys=7&prefix=p%2Fa%20b&start-after=p%2Fq",
                    "/bucket?continuation-token=a%2Fb%3D&encoding-type=url&list-type=2&max-keys=6&prefix=p%2Fa%20b",
                ])
        }
    }

    private static func page(_ elements: String, _ keys: [String]) -> String {
        let contents = keys.map {
            "<Contents><Key>\($0)</Key><LastModified>2013-05-24T00:00:00.000Z</LastModified><Size>5</Size></Contents>"
        }
        return ScriptedStorage.response(
            "200 OK", [], "<ListBucketResult>\(elements)\(contents.joined())</ListBucketResult>")
    }

    @Test(
        "A list that is not understood is an error",
        arguments: [
            ScriptedStorage.response("200 OK", [], "<html>"), ScriptedStorage.response("200 OK", [], "<Other/>"),
            page("", ["p/a"]), page("<IsTruncated>false</IsTruncated>", ["other/a"]),
            page("<IsTruncated>true</IsTruncated>", ["p/a"]),
            page("<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>", []),
            page("<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>", ["p/%zz"]),
        ])
    func malformedList(_ response: String) async throws {
        try await onThread {
            let storage = try ScriptedStorage([.keep(response)])
            #expect {
                try storage.client().list(prefix: "", after: nil, limit: 7)
            } throws: { error in
                "\(error)".contains("not a document of the interface of S3")
            }
        }
    }

    @Test("A thousand objects are deleted with one request, and those whose keys XML cannot contain one by one")
    func delete() async throws {
        try await onThread {
            let storage = try ScriptedStorage { _, request in
                .keep(
                    request.method == "DELETE"
                        ? "HTTP/1.1 204 No Content\r\n\r\n"
                        : ScriptedStorage.response(
                            "200 OK", [],
                            "<DeleteResult><Error><Key>p/k1</Key><Code>NoSuchKey</Code></Error></DeleteResult>"))
            }
            let client = try storage.client()
            try client.delete([])
            #expect(storage.requests.isEmpty)
            try client.delete((0..<1001).map { "k\($0)" } + ["a\u{1}b", "<&>\r"])
            try client.delete(["one"])
            let requests = storage.requests
            #expect(requests.map(\.method) == ["DELETE", "DELETE", "POST", "POST", "DELETE"])
            #expect(requests.map(\.target).contains("/bucket/p/a%01b"))
            #expect(requests.filter { $0.method == "POST" }.allSatisfy { $0.target == "/bucket?delete=" })
            let documents = requests.filter { $0.method == "POST" }.compactMap { StorageDocument($0.content) }
            #expect(documents.map { $0.all("Object").count } == [1000, 1])
            #expect(documents[0].all("Object")[7]["Key"] == "p/k7")
        }
    }

    @Test("An object that could not be deleted is an error")
    func deleteError() async throws {
        try await onThread {
            func result(_ code: String) -> String {
                ScriptedStorage.response(
                    "200 OK", [],
                    "<DeleteResult><Error><Key>p/b</Key><Code>\(code)</Code><Message>m</Message></Error></DeleteResult>"
                )
            }
            let storage = try ScriptedStorage([.keep(result("AccessDenied")), .keep(result("InternalError"))])
            let client = try storage.client()
            #expect(throws: ObjectError.refused(status: 200, code: "AccessDenied", message: "m")) {
                try client.delete(["a", "b"])
            }
            #expect(throws: ObjectError.unavailable("InternalError")) { try client.delete(["a", "b"]) }
        }
    }

    @Test("A key that could be normalized on its way is refused", arguments: ["", "a/../b", ".", "a/./b", "a\0b"])
    func keys(_ key: String) async throws {
        try await onThread {
            let storage = try ScriptedStorage([.keep("")])
            #expect(throws: ObjectError.self) { try storage.client().put(key, []) }
            #expect(throws: ObjectError.self) { try storage.client().put(String(repeating: "k", count: 1023), []) }
            #expect(storage.connections == 0)
        }
    }
}
