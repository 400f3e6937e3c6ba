import Foundation
import HTTPSemantics
import TestSupport
import Testing

@Suite struct ProblemDetailsTests {
    @Test("PRB-03: the media type is application/problem+json, and the member status equals the status")
    func members() {
        let problem = ProblemDetails(
            type: "https://iana.org/assignments/http-problem-types#mismatching-upload-offset", title: "Offset mismatch",
            status: .conflict, detail: "Ask again.", code: "mismatching-upload-offset",
            members: [
                ("expected-offset", .integer(12)), ("provided-offset", .integer(.max)), ("retry", .boolean(true)),
            ])
        #expect(ProblemDetails.mediaType == "application/problem+json")
        let expected =
            #"{"type":"https://iana.org/assignments/http-problem-types#mismatching-upload-offset","#
            + #""title":"Offset mismatch","status":409,"code":"mismatching-upload-offset","#
            + #""detail":"Ask again.","expected-offset":12,"#
            + #""provided-offset":9223372036854775807,"retry":true}"#
        #expect(String(decoding: problem.json(), as: UTF8.self) == expected)
    }

    @Test("PRB-03: the title of a problem without a type is the reason phrase of its status")
    func blank() {
        let json = String(decoding: ProblemDetails(status: .notFound).json(), as: UTF8.self)
        #expect(json == #"{"type":"about:blank","title":"Not Found","status":404}"#)
    }

    @Test func reservedNamesAreWrittenOnce() {
        let problem = ProblemDetails(
            status: .gone, members: [("status", .integer(200)), ("a", .boolean(false)), ("a", .integer(1))])
        let json = String(decoding: problem.json(), as: UTF8.self)
        #expect(json == #"{"type":"about:blank","title":"Gone","status":410,"a":false}"#)
    }

    @Test("Any text is serialized as valid JSON", arguments: SeededGenerator.seeds)
    func escaping(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            let text = generator.unicode(upTo: 30)
            let problem = ProblemDetails(status: .badRequest, detail: text, members: [("x" + text, .string(text))])
            let object = try JSONSerialization.jsonObject(with: Data(problem.json())) as? [String: Any]
            let members = try #require(object)
            #expect((members["detail"] as? String)?.utf8.elementsEqual(text.utf8) == true, "\(text.debugDescription)")
            #expect(members["x" + text] as? String == text)
            #expect(members["status"] as? Int == 400)
        }
    }
}
