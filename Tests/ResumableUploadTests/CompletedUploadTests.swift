import HTTPSemantics
import ResumableUpload
import Testing

@Suite struct CompletedUploadTests {
    private let answer = Response(status: 201, fields: ["Location": "/doc/1"], content: Array("made".utf8))
    private var complete: UploadState { UploadState(offset: 40, length: 40, phase: .complete(answer)) }
    private let processing = UploadState(offset: 40, length: 40, phase: .processing)

    @Test(
        "APP-20: a valid repetition of the append that completed the upload gets the stored response",
        arguments: Dialect.allCases)
    func replay(dialect: Dialect) {
        for framing in [MessageFraming.none, .length(0)] {
            let decision = dialect.decide(dialect.append(complete: true, offset: 40), framing, on: complete)
            // Versions 6 and 7 demand a refusal, but in version 6 the length may have completed the upload before `?1`.
            #expect(decision == (dialect == .interop7 ? .refuse(.completed) : .replay(answer)))
        }
    }

    @Test("APP-20 LEN-02: a request with another length is not a repetition", arguments: Dialect.allCases)
    func replayOfAnotherLength(dialect: Dialect) {
        for state in [complete, processing] {
            let decision = dialect.decide(dialect.append(complete: true, offset: 40, length: 41), .length(0), on: state)
            if dialect < .interop5 {
                #expect(decision.refusal == nil)
            } else {
                #expect(decision.refusal?.status(in: dialect) == 400)
            }
        }
    }

    @Test(
        "APP-19 APP-21: every other append is refused, and the response reports incompleteness",
        arguments: Dialect.allCases)
    func refused(dialect: Dialect) {
        for (complete, framing) in [(false, MessageFraming.length(5)), (true, .length(5)), (false, .length(0))] {
            // If the length completed the upload, `?0` without content is a repetition, too.
            if framing == .length(0), dialect.lengthCompletes { continue }
            for state in [self.complete, processing] {
                let decision = dialect.decide(dialect.append(complete: complete, offset: 40), framing, on: state)
                #expect(decision == .refuse(.completed))
            }
        }
        let response = dialect.responses.refused(.completed, offset: 40)
        #expect(response.status == 400)
        #expect(response.fields.completeness(in: dialect) == false)
    }

    @Test(
        "APP-07 VER-17: another offset is refused with 409, in versions 6 and 7 with 400", arguments: Dialect.allCases)
    func mismatch(dialect: Dialect) throws {
        let decision = dialect.decide(dialect.append(complete: true, offset: 39), .length(1), on: complete)
        let error = try #require(decision.refusal)
        #expect(error.status(in: dialect) == (dialect == .interop6 || dialect == .interop7 ? 400 : 409))
        #expect(dialect.responses.refused(error).fields.completeness(in: dialect) == false)
    }

    @Test(
        "APP-28 CON-09: a repetition during processing waits for the answer of the target", arguments: Dialect.allCases)
    func join(dialect: Dialect) {
        #expect(dialect.decide(dialect.append(complete: true, offset: 40), .none, on: processing) == .join)
        let elsewhere = dialect.decide(dialect.append(complete: true, offset: 30), .length(10), on: processing)
        #expect(elsewhere.refusal == .mismatchingOffset(expected: 40, provided: 30))
    }

    @Test("OFF-14: a retrieval during processing reports the upload as incomplete", arguments: Dialect.allCases)
    func retrievalWhileProcessing(dialect: Dialect) {
        let response = dialect.responses.retrieved(state: processing)
        #expect(response.fields["Upload-Offset"] == "40")
        #expect(response.fields.completeness(in: dialect) == false)
    }

    @Test("CRE-22 CMP-03: an early or failing answer of the target ends the upload", arguments: Dialect.allCases)
    func early(dialect: Dialect) {
        for status in [400, 500] as [Status] {
            let state = UploadState(offset: 10, length: 100, phase: .complete(Response(status: status)))
            let response = dialect.responses.finished(
                Response(status: status), state: state, uploadLocation: "/u/1")
            #expect(response.status == status)
            #expect(response.fields.completeness(in: dialect) == true)
            let head = dialect.responses.retrieved(state: state)
            #expect(head.fields.completeness(in: dialect) == true)
            #expect(head.fields["Upload-Offset"] == "10")
            let append = dialect.decide(dialect.append(complete: true, offset: 10), .length(90), on: state)
            #expect(append == .refuse(.completed))
        }
    }

    @Test(
        "DIG-01: a digest mismatch of the representation is the final response of the upload",
        arguments: Dialect.allCases)
    func digestOfRepresentation(dialect: Dialect) {
        let error = UploadError.digestMismatch(field: "Repr-Digest", algorithm: "sha-256")
        let response = dialect.responses.finished(
            Response(error.problem(in: dialect)), state: UploadState(offset: 10), uploadLocation: nil)
        #expect(response.status == 400)
        #expect(response.fields.completeness(in: dialect) == true)
        #expect(response.fields["Content-Type"] == "application/problem+json")
    }

    @Test("DIG-02: a digest mismatch of the content does not change the upload", arguments: Dialect.allCases)
    func digestOfContent(dialect: Dialect) {
        let response = dialect.responses.refused(
            .digestMismatch(field: "Content-Digest", algorithm: "sha-512"), offset: 10)
        #expect(response.status == 400)
        #expect(response.fields["Upload-Offset"] == "10")
        #expect(response.fields.completeness(in: dialect) == false)
    }
}
