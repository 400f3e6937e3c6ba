import BrowserAssets
import HTTPSemantics

/// The web interface: one document, with its style and its script. Responses differ only in the attributes that name
/// the paths and the status, and in the rows of the folder.
struct BrowserPage: Sendable {
    /// The page of this version; `nil` if its template lacks a placeholder.
    static let current = BrowserPage(
        template: text(BrowserAssets.page), style: text(BrowserAssets.pageStyle),
        script: constant("onward", ofModule: text(BrowserAssets.module))
            + withoutExports(text(BrowserAssets.pageTexts) + "\n" + text(BrowserAssets.pageScript)),
        version: BrowserAssets.version)

    /// The placeholders in the template, in their order.
    private static let placeholders = [
        " data-onward", "<style></style>", " data-status", "<tbody></tbody>", "<script type=\"module\"></script>",
    ]

    private let version: String
    /// The parts of the document up to the attributes of `html`, up to the attributes of `body`, and up to the rows.
    private let start, head, body: [UInt8]
    /// The part after the rows.
    let end: [UInt8]
    /// The fields of every response with the page.
    let fields: Fields

    /// - Parameters:
    ///   - template: a document with these placeholders.
    ///   - script: a JavaScript module without imports and exports.
    init?(template: String, style: String, script: String, version: String) {
        guard let parts = Self.parts(of: template, at: Self.placeholders) else { return nil }
        self.version = version
        start = Array(parts[0].utf8)
        head = Array("\(parts[1])<style>\(style)</style>\(parts[2])".utf8)
        body = Array("\(parts[3])<tbody>".utf8)
        end = Array("</tbody>\(parts[4])<script type=\"module\">\(script)</script>\(parts[5])".utf8)
        // User files have the same origin, so 'self' would let them run as scripts of the page.
        let policy = """
            default-src 'none'; script-src '\(Self.source(script))'; style-src '\(Self.source(style))'; \
            img-src 'self' blob:; media-src 'self' blob:; connect-src 'self'; worker-src blob:; form-action 'none'; \
            base-uri 'none'; frame-ancestors 'none'
            """
        fields = [
            "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin",
            "Referrer-Policy": "same-origin",
        ]
    }

    /// Whether the request names HTML, and does not prefer JSON.
    static func isRequested(by fields: Fields) -> Bool {
        guard let accept = AcceptField(fieldLines: fields.values("Accept")),
            let html = accept.weight(ofListedType: "text/html"), html > 0
        else { return false }
        return html > accept.weight(ofListedType: "application/json") ?? 0
    }

    func appendStart(
        _ attributes: [(String, String)], _ status: [(String, String)], to bytes: inout [UInt8]
    ) {
        func append(_ attributes: [(String, String)]) {
            for (name, value) in attributes {
                bytes += " data-\(name)=\"".utf8
                bytes.appendHTML(value)
                bytes += "\"".utf8
            }
        }
        bytes += start
        append(attributes + [("version", version)])
        bytes += head
        append(status)
        bytes += body
    }

    // MARK: Assembly

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    /// The hash of an inline script or style in a Content-Security-Policy.
    private static func source(_ text: String) -> String { "sha256-" + TokenList.digest(text).base64 }

    private static func parts(of text: String, at placeholders: [String]) -> [String]? {
        var parts: [String] = []
        var remaining = text[...]
        for placeholder in placeholders {
            guard let range = remaining.firstRange(of: placeholder) else { return nil }
            parts.append(String(remaining[..<range.lowerBound]))
            remaining = remaining[range.upperBound...]
        }
        return parts + [String(remaining)]
    }

    /// Returns JavaScript that defines a constant with the exports of a module as its properties. The page contains the
    /// module in this form instead of importing its URL: a Content-Security-Policy that allows the import has to name
    /// the host that the browser uses, which the server may not know.
    static func constant(_ name: String, ofModule source: String) -> String {
        let names = source.split(separator: "\n").compactMap(exportedName).joined(separator: ", ")
        return "const \(name) = (() => {\n\(withoutExports(source))\nreturn { \(names) };\n})();\n"
    }

    /// The source without `export` at the beginning of lines.
    static func withoutExports(_ source: String) -> String {
        source.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.hasPrefix("export ") ? $0.dropFirst(7) : $0 }.joined(separator: "\n")
    }

    /// The name that a line such as `export async function upload(` exports.
    private static func exportedName(_ line: Substring) -> String? {
        guard line.hasPrefix("export ") else { return nil }
        let words = line.dropFirst(7).split { !$0.isLetter && !$0.isNumber && $0 != "_" && $0 != "$" }
        return words.first { !["async", "function", "class", "const", "let"].contains($0) }.map(String.init)
    }
}

/// A request that gets the page instead of a listing or an error.
struct PageRequest: Sendable {
    let page: BrowserPage
    /// The path above the server's own paths, as the client requests it, with a slash at its end.
    let base: String
    /// The path of the folder, as the client requests it, with a slash at its end.
    let folder: String
    /// The relative reference from the URL of the request to the folder, such as `./`.
    let link: String

    /// The page without rows.
    func response(_ status: Status, code: String?, fields: Fields = [:]) -> Response {
        var bytes: [UInt8] = []
        let state = [("status", status.description)] + (code.map { [("code", $0)] } ?? [])
        page.appendStart(attributes, state, to: &bytes)
        bytes += page.end
        var all = page.fields
        for field in fields { all.set(field.name, field.value) }
        return Response(status: status, fields: all, content: bytes)
    }

    /// The page in place of a refusal of this server; `nil` if other credentials would not help, or if an application has
    /// refused the request.
    func response(to refusal: AuthorizationRefusal) -> Response? {
        guard refusal.response == nil, [.unauthorized, .forbidden].contains(refusal.problem.status) else { return nil }
        return response(refusal.problem.status, code: refusal.problem.code, fields: refusal.fields)
    }

    var attributes: [(String, String)] { [("base", base), ("folder", folder)] }
}
