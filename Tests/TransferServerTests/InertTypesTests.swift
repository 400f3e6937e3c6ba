import Testing

@testable import TransferServer

@Suite("Inert types")
struct InertTypesTests {
    @Test(
        "text, images, audio, video, fonts, data and archives are inert types",
        arguments: [
            "text/plain", "TEXT/Plain; charset=utf-8", "text/csv", "text/css", "image/png", "image/webp", "audio/mpeg",
            "video/mp4", "font/woff2", "application/json", "application/octet-stream", "application/zip",
        ])
    func inert(type: String) { #expect(InertTypes.contain(type)) }

    @Test(
        "SEC-13: all other types are active, including malformed ones",
        arguments: [
            "text/html", "Text/HTML", "text/html;charset=utf-8", "application/xhtml+xml", "image/svg+xml",
            "image/SVG+XML",
            "image/svg", "text/xml", "application/xml", "application/rss+xml", "application/vnd.own+xml", "text/xsl",
            "audio/x-own+xml", "text/javascript", "application/javascript", "application/x-javascript",
            "text/ecmascript",
            "text/jscript", "text/vbscript", "application/pdf", "text/pdf", "application/mathml+xml",
            "application/x-shockwave-flash", "text/cache-manifest", "multipart/mixed", "multipart/x-mixed-replace",
            "message/rfc822", "application/x-mimearchive", "application/wasm", "application/java-archive",
            "unknown/unknown", "*/*", "text/*", "", "html", "text/", "/plain", "text/plain,text/html",
            "text/plain; charset=\"", "text/plain text/html", "text /plain", "text/plain;a=b,text/html;c=d",
        ])
    func active(type: String) { #expect(!InertTypes.contain(type)) }
}
