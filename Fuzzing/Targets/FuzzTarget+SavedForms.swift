import Digests
import HTTPSemantics
import ResumableUpload

@testable import UploadStorage

extension FuzzTarget {
    /// Checks rows of the catalog and saved digests: damaged values are rejected, and valid values are written back unchanged.
    static let savedForms = FuzzTarget(
        name: "saved-forms",
        maxLength: 2048,
        seeds: { generator in
            (0..<60).flatMap { index -> [[UInt8]] in
                let response = Response(
                    status: 201, fields: ["Location": "/files/a", "ETag": "\"x\""], content: Array("text".utf8))
                let upload = NewUpload(
                    principal: "p", method: .put, target: "/files/a", fields: ["Content-Type": "a/b"],
                    dialect: generator.pick(Dialect.allCases),
                    limits: UploadLimits(maxSize: generator.number(), maxAge: 5),
                    length: generator.pick([nil, 7]), digests: [.sha256], expiresAt: generator.number())
                var digest = RunningDigest(generator.pick([.sha256, .sha512]))
                Array(repeating: UInt8(7), count: index * 5).withUnsafeBytes { digest.update($0) }
                var forms = [
                    response.savedBytes, upload.savedBytes, digest.encodedState(),
                    DigestStates([digest.encodedState()]).savedBytes, Fields([("A", "b")]).savedBytes,
                ]
                if let name = PublishedName(segments: ["a", "b"]) {
                    let intent = PublicationIntent(
                        name: name, replaced: generator.pick([nil, "tag"]), identity: "i", response: response,
                        refused: response)
                    forms.append(intent.savedBytes)
                }
                return forms
            }
        },
        check: { input throws(Violation) in
            let bytes = Array(input)
            try checkForm(Fields.self, bytes) { $0 == $1 }
            try checkForm(Response.self, bytes) { $0 == $1 }
            try checkForm(NewUpload.self, bytes) { $0 == $1 }
            try checkForm(PublicationIntent.self, bytes) { $0 == $1 }
            try checkForm(DigestStates.self, bytes) { $0.states == $1.states }
            if var digest = RunningDigest(encodedState: bytes) {
                try require(digest.encodedState() == bytes, "the state of a digest was changed")
                bytes.withUnsafeBytes { digest.update($0) }
                try require([32, 64].contains(digest.finalized().count), "a digest of another size")
            }
            if let id = UploadID(parsing: InputReader(input).text) {
                try require(id.text.utf8.elementsEqual(bytes), "an upload has two names")
            }
        })

    private static func checkForm<Form: SavedForm>(
        _: Form.Type, _ bytes: [UInt8], _ isEqual: (Form, Form) -> Bool
    ) throws(Violation) {
        guard let form = try? Form(savedBytes: bytes) else { return }
        let written = form.savedBytes
        try require(written.count <= bytes.count, "\(bytes.count) bytes became \(written.count)")
        guard let again = try? Form(savedBytes: written) else { throw Violation("\(form) cannot be read again") }
        try require(isEqual(form, again), "\(form) differs after a round trip")
    }
}
