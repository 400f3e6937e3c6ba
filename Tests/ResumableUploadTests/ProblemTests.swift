import HTTPSemantics
import ResumableUpload
import Testing

@Suite struct ProblemTests {
    private let registry = "https://iana.org/assignments/http-problem-types#"

    @Test(
        "PRB-01 PRB-02 APP-06 APP-07: a mismatching offset is refused with 409 and both offsets",
        arguments: Dialect.allCases)
    func mismatchingOffset(dialect: Dialect) {
        let error = UploadError.mismatchingOffset(expected: 40, provided: 41)
        let response = dialect.responses.refused(error, offset: 7)
        #expect(response.status == 409)
        #expect(response.fields.values("Upload-Offset") == ["40"])
        #expect(response.fields.completeness(in: dialect) == false)
        let json = String(decoding: response.content.bytes ?? [], as: UTF8.self)
        #expect(json.contains("\"type\":\"\(registry)mismatching-upload-offset\""))
        #expect(json.contains("\"expected-offset\":40,\"provided-offset\":41"))
    }

    @Test(
        "LEN-04: an inconsistent length is refused with 400 and the problem type of the draft",
        arguments: Dialect.allCases)
    func inconsistentLength(dialect: Dialect) {
        let response = dialect.responses.refused(.inconsistentLength(detail: "They differ."), offset: 40)
        #expect(response.status == 400)
        let json = String(decoding: response.content.bytes ?? [], as: UTF8.self)
        #expect(json.contains("\"type\":\"\(registry)inconsistent-upload-length\""))
    }

    @Test(
        "PRB-04 VER-17: the error for a completed upload has a problem type in versions 6 to 8 only",
        arguments: Dialect.allCases)
    func completed(dialect: Dialect) {
        let problem = UploadError.completed.problem(in: dialect)
        #expect(problem.status == 400)
        let isDefined = [.interop6, .interop7, .interop8].contains(dialect)
        #expect(problem.type == (isDefined ? registry + "completed-upload" : "about:blank"))
    }

    @Test(
        "PRB-03 PRB-05: every refusal contains a problem document with the status of the response",
        arguments: Dialect.allCases)
    func documents(dialect: Dialect) {
        for error in UploadError.samples {
            let response = dialect.responses.refused(error)
            #expect(response.fields.values("Content-Type") == ["application/problem+json"])
            #expect(response.status == error.status(in: dialect))
            let json = String(decoding: response.content.bytes ?? [], as: UTF8.self)
            #expect(json.contains("\"status\":\(response.status.rawValue)"))
            #expect(json.contains("\"code\":\"\(error.code)\""))
            #expect(json.contains("\"detail\":\"\(error.detail)\""))
            #expect(response.status.isClientError)
        }
    }

    @Test("PRB-03: all codes are distinct and consist of lowercase letters and hyphens")
    func codes() {
        let codes = UploadError.samples.map(\.code)
        #expect(Set(codes).count == codes.count)
        #expect(codes.allSatisfy { $0.allSatisfy { $0.isLowercase || $0 == "-" } })
    }
}
