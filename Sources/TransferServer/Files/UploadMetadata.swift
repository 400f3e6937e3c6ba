import FoundationEssentials
import HTTPSemantics
import ResumableUpload

/// The name and media type of a file in `Upload-Metadata`. tus-js-client sends this field of tus 1.0 with requests of
/// the draft, too.
///
/// The value is a list of pairs: a key, a space, and the value in Base64 (tus 1.0, "Upload-Metadata").
struct UploadMetadata: Sendable, Hashable {
    /// The value of `filename`, or else of `name`, as the client wrote it.
    let filename: String?
    /// The value of `filetype`, or else of `type`, as the client wrote it.
    let filetype: String?

    /// Parses `Upload-Metadata`; returns `nil` if the field is absent or any part of it is malformed.
    init?(_ fields: Fields) {
        guard let list = fields[TusProtocol.metadataField] else { return nil }
        var values: [String: Data] = [:]
        for pair in list.split(separator: ",", omittingEmptySubsequences: false) {
            let words = pair.split(separator: " ").map(String.init)
            // After a key without a value the space can be absent, too.
            guard (1...2).contains(words.count), Fields.isValidValue(words[0]),
                let value = Data(canonicalBase64: words.count == 2 ? words[1] : ""),
                values.updateValue(value, forKey: words[0]) == nil
            else { return nil }
        }
        var texts: [String: String] = [:]
        for key in ["filename", "name", "filetype", "type"] {
            guard let value = values[key], !value.isEmpty else { continue }
            guard let text = String(validating: value, as: UTF8.self) else { return nil }
            texts[key] = text
        }
        filename = texts["filename"] ?? texts["name"]
        filetype = texts["filetype"] ?? texts["type"]
    }

    /// The value of the field with only the name and the media type; `nil` if it has neither. Clients also send other
    /// pairs, for example data and tokens of applications, which are not stored.
    var value: String? {
        let pairs = [("filename", filename), ("filetype", filetype)].compactMap { key, text in
            text.map { key + " " + Array($0.utf8).base64 }
        }
        return pairs.isEmpty ? nil : pairs.joined(separator: ",")
    }
}

extension Data {
    /// Decodes Base64; `nil` if the text is not canonical: unused bits must be zero (RFC 4648 section 3.5).
    init?(canonicalBase64 text: String) {
        guard let data = Data(base64Encoded: text), data.base64EncodedString() == text else { return nil }
        self = data
    }
}
