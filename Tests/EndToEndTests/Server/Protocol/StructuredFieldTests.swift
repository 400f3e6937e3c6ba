import ConformanceKit
import HTTPSemantics
import Testing

/// Structured fields (RFC 9651) in requests and responses: every field of every response, in every version.
@Suite("Structured fields", .serialized, .blocking)
struct StructuredFieldTests {
    @Test("STF-06: two lines of Upload-Complete are an invalid value", arguments: ["?1", "?0"])
    func repeatedCompleteness(value: String) throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let append = Request.append(.v8, location, at: 1, complete: true, .bytes([2])).with(
                "Upload-Complete", value)
            #expect(try server.exchange(append).status == 400)
            let creation = Request.creation(.v8, "PUT", "/files/g", complete: true, .bytes([2])).with(
                "Upload-Complete", value)
            let response = try server.exchange(creation)
            #expect(response.interim.isEmpty)
            #expect(response.status == 201)
        }
    }

    @Test("STF-08 LIM-20: every field in a response is in canonical form", arguments: Interop.allCases)
    func canonical(version: Interop) throws {
        try withServer("--max-size", "999999999999999", "--max-append-size", "1000000") { server in
            var responses: [Response] = []
            let location = try server.begin(version, "/files/f", [1])
            for request in [
                Request.creation(version, "PUT", "/files/g", complete: true, .bytes([1])),
                .retrieval(version, location),
                .creation(version, "PUT", "/files/h", complete: false, .bytes([1])),
                .append(version, location, at: 1, complete: false, .bytes([1])),
                .append(version, location, at: 7, complete: false, .bytes([1])),
                .append(version, location, at: 2, complete: true, .bytes([1])), .retrieval(version, location),
                Request("OPTIONS", "/files/f", Request.versionField(version)), .cancellation(version, location),
            ] {
                responses.append(try server.exchange(request))
            }
            for response in responses {
                for carrier in [response as any FieldCarrier] + response.interim.map({ $0 as any FieldCarrier }) {
                    #expect(!carrier.fields.contains("Upload-Offset") || carrier.offset != nil)
                    #expect(!carrier.fields.contains("Upload-Length") || carrier.length != nil)
                    #expect(!carrier.fields.contains("Upload-Complete") || carrier.complete != nil)
                    #expect(!carrier.fields.contains("Upload-Incomplete") || carrier.incomplete != nil)
                    #expect(!carrier.fields.contains("Upload-Limit") || carrier.limits != nil)
                    #expect(
                        !carrier.fields.contains("Upload-Draft-Interop-Version")
                            || carrier.echoedVersion == Int64(version.rawValue))
                }
            }
        }
    }
}
