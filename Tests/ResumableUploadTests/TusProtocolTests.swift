import HTTPSemantics
import ResumableUpload
import Testing

@Suite struct TusProtocolTests {
    @Test("A request uses tus 1.0 if it has Tus-Resumable and no field that only the draft defines")
    func detection() {
        #expect(TusProtocol.isUsed(by: ["Tus-Resumable": "1.0.0"]))
        #expect(TusProtocol.isUsed(by: ["tus-resumable": "0.2.2", "Upload-Length": "5", "Upload-Metadata": "a"]))
        #expect(TusProtocol.isUsed(by: ["Tus-Resumable": "1.0.0", "Upload-Offset": "0", "Upload-Concat": "partial"]))
        #expect(!TusProtocol.isUsed(by: [:]))
        #expect(!TusProtocol.isUsed(by: ["Upload-Length": "5", "Upload-Offset": "0"]))
        for (name, value) in [
            ("Upload-Draft-Interop-Version", "6"), ("Upload-Complete", "?0"), ("Upload-Incomplete", "?1"),
            ("upload-complete", "void"),
        ] {
            #expect(!TusProtocol.isUsed(by: Fields([("Tus-Resumable", "1.0.0"), (name, value)])))
        }
    }

    @Test("Upload-Concat is refused with every creation and every plain upload", arguments: Dialect.allCases)
    func concatenation(dialect: Dialect) throws {
        for complete in [true, false, nil] as [Bool?] {
            for value in ["partial", "final;/uploads/a /uploads/b", "", "?"] {
                for framing in [MessageFraming.none, .length(5), .chunked] {
                    var fields = dialect.request(complete: complete, length: 9)
                    fields.append("Upload-Concat", value)
                    let creation = Creation(dialect: dialect, isComplete: complete, framing: framing, fields: fields)
                    #expect(creation.decide(limits: UploadLimits()).refusal == .concatenation)
                }
            }
        }
        let response = dialect.responses.refused(.concatenation)
        #expect(response.status == 400)
        #expect(response.fields.completeness(in: dialect) == false)
        #expect(UploadError.concatenation.code == "concatenation-not-supported")
        #expect(UploadError.concatenation.detail.contains("parallelUploads"))
    }
}
