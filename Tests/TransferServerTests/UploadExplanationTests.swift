import ResumableUpload
import Testing

@testable import TransferServer

@Suite("Explanations of requests without 104")
struct UploadExplanationTests {
    private typealias Explanation = UploadExplanation

    @Test("The explanation has the word and the sentence of the decision")
    func reasons() {
        let cases: [(Explanation, String?, String)] = [
            (Explanation(), "undecided", "no 104: the request ended before the server decided how to handle it"),
            (Explanation(refusal: "missing-token"), "refused", "no 104: the request was refused (missing-token)"),
            (
                Explanation(handling: .plain(.noCompleteness), permission: .withheld(.noVersion)), "no-completeness",
                "no 104: the request has no Upload-Complete (interop version 3: Upload-Incomplete); not resumable"
            ),
            (
                Explanation(handling: .plain(.unannounced)), "unannounced",
                "no 104: no response could report the URL of the upload; not resumable"
            ),
            (
                Explanation(handling: .plain(.unannounced), permission: .withheld(.declined)), "declined",
                "no 104: the request has Onward-Interim: off; not resumable: "
                    + "no response reports the URL of the upload before the end of the request"
            ),
            (
                Explanation(handling: .creation(isPart: true), permission: .withheld(.turnedOff)), "turned-off",
                "no 104: the server runs with --interim off; resumable: the final response has the URL of the upload"
            ),
            (
                Explanation(handling: .creation(isPart: false), permission: .allowed, unwritable: 1), "not-writable",
                "no 104: the connection was not writable: the client, or a proxy, does not read while it sends; "
                    + "not resumable: no response reports the URL of the upload before the end of the request"
            ),
            (
                Explanation(handling: .append, permission: .allowed, progressObstacle: .version(4)),
                "no-progress-in-version", "no 104: interop version 4 has no 104 for offsets"
            ),
            (
                Explanation(handling: .append, permission: .allowed, progressObstacle: .contentDigest),
                "content-digest",
                "no 104: nothing is acknowledged before Content-Digest has been verified"
            ),
            (
                Explanation(handling: .append, permission: .allowed, refusal: "mismatching-upload-offset"), "refused",
                "no 104: the request was refused (mismatching-upload-offset)"
            ),
            (
                Explanation(handling: .append, permission: .allowed), "not-due",
                "no 104: the server sends the first offset after 8 MiB or one second, and the content ended before that"
            ),
            (
                Explanation(handling: .creation(isPart: false), permission: .allowed, announcements: 1, offsets: 1),
                nil,
                "104 sent: the upload's URL and an offset"
            ),
            (Explanation(handling: .append, permission: .allowed, offsets: 7), nil, "104 sent: 7 offsets"),
            // A later refusal does not change the explanation of the 104.
            (
                Explanation(
                    handling: .creation(isPart: true), permission: .allowed, announcements: 1,
                    refusal: "digest-mismatch"),
                nil, "104 sent: the upload's URL"
            ),
        ]
        for (explanation, word, sentence) in cases {
            #expect(explanation.omission?.word == word)
            #expect(explanation.sentence == sentence)
        }
    }

    @Test("Each reason has a unique word that is a valid label value, and a sentence that is a valid field value")
    func words() {
        let withheld = InterimObstacle.allCases.map { InterimOmission.withheld($0) }
        let plain = Creation.PlainReason.allCases.map { InterimOmission.plain($0) }
        let all =
            withheld + plain
            + [
                .refused("\"\u{7F}\r\nü"), .noProgressInVersion(3), .contentDigest, .notWritable, .notDue, .undecided,
            ]
        #expect(Set(all.map(\.word)).count == all.count)
        #expect(Set(all.map(\.word)) == Set(InterimOmission.words))
        #expect(Set(all.map(\.sentence)).count == all.count)
        for entry in all {
            #expect(entry.word.allSatisfy { $0.isASCII && ($0.isLowercase || $0 == "-") }, "\(entry)")
            #expect(entry.sentence.unicodeScalars.allSatisfy { (0x20..<0x7F).contains($0.value) }, "\(entry)")
        }
    }
}
