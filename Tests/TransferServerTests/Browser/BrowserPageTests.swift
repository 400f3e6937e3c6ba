import BrowserAssets
import HTTPSemantics
import Testing
import UploadStorage

@testable import TransferServer

@Suite("The document of the page")
struct BrowserPageTests {
    private static let template = """
        <!doctype html>
        <html lang="en" data-onward>
        <style></style>
        <body data-status>
        <table><tbody></tbody></table>
        <script type="module"></script>
        </html>

        """

    private func request(folder: String = "/in/files/a%20b/", link: String = "./") throws -> PageRequest {
        let page = BrowserPage(template: Self.template, style: "p { }", script: "go();\n", version: "1.2.3")
        return PageRequest(page: try #require(page), base: "/in/", folder: folder, link: link)
    }

    @Test("the paths and the version are attributes of the document, and the status is one of its body")
    func attributes() throws {
        let response = try request(folder: "/files/\"<&>\"/").response(404, code: "no-such-file")
        #expect(response.status == 404)
        #expect(
            String(decoding: try #require(response.content.bytes), as: UTF8.self) == """
                <!doctype html>
                <html lang="en" data-base="/in/" data-folder="/files/&quot;&lt;&amp;&gt;&quot;/" data-version="1.2.3">
                <style>p { }</style>
                <body data-status="404" data-code="no-such-file">
                <table><tbody></tbody></table>
                <script type="module">go();
                </script>
                </html>

                """)
    }

    @Test("files and folders are rows; names are escaped")
    func rows() throws {
        let format = PageListing(request: try request(link: "./files/"))
        var bytes: [UInt8] = []
        format.append(
            PublishedEntry(name: "a&<b>\"c d", isDirectory: false, size: 12_345, modifiedSeconds: 784_111_777),
            isFirst: true, to: &bytes)
        format.append(
            PublishedEntry(name: "ö", isDirectory: true, size: 0, modifiedSeconds: 0), isFirst: false, to: &bytes)
        format.appendEnd(isComplete: false, to: &bytes)
        #expect(
            String(decoding: bytes, as: UTF8.self).hasPrefix(
                """
                <tr data-size="12345" data-modified="784111777"><td><a href="./files/a&amp;%3Cb%3E%22c%20d">\
                a&amp;&lt;b&gt;&quot;c d</a></td><td>12345</td><td><time datetime="1994-11-06T08:49:37Z">1994-11-06 08:49\
                </time></td></tr>
                <tr class="folder" data-modified="0"><td><a href="./files/%C3%B6/">ö</a></td><td></td>\
                <td><time datetime="1970-01-01T00:00:00Z">1970-01-01 00:00</time></td></tr>
                <tr class="more" data-more></tr>
                </tbody></table>
                """))
    }

    @Test("the policy allows exactly the script and the style of the document")
    func policy() throws {
        let page = try request().page
        let policy = try #require(page.fields["Content-Security-Policy"])
        #expect(policy.contains("default-src 'none'; script-src 'sha256-\(TokenList.digest("go();\n").base64)';"))
        #expect(policy.contains(" style-src 'sha256-\(TokenList.digest("p { }").base64)';"))
        #expect(policy.contains("frame-ancestors 'none'") && policy.contains("base-uri 'none'"))
        #expect(!policy.contains("unsafe"))
    }

    @Test("a module becomes a constant with its exports")
    func module() {
        let source = """
            const hidden = 1;
            export const version = "1";
            export async function upload(file) {
              return "export x";
            }
            export class UploadError extends Error {}
            export function* list() {}
            export let $a_1 = hidden;
            """
        #expect(
            BrowserPage.constant("onward", ofModule: source) == """
                const onward = (() => {
                const hidden = 1;
                const version = "1";
                async function upload(file) {
                  return "export x";
                }
                class UploadError extends Error {}
                function* list() {}
                let $a_1 = hidden;
                return { version, upload, UploadError, list, $a_1 };
                })();

                """)
    }

    @Test("the page of this version has all places, and its script imports nothing and does not end its element")
    func current() throws {
        let page = try #require(BrowserPage.current)
        let response = PageRequest(page: page, base: "/", folder: "/files/", link: "./").response(200, code: nil)
        let text = String(decoding: try #require(response.content.bytes), as: UTF8.self)
        let script = try #require(text.split(separator: "<script type=\"module\">").dropFirst().first)
        #expect(script.split(separator: "</script").count == 2, "the script contains the end of its element")
        #expect(!script.contains("<!--"))
        for line in script.split(separator: "\n") {
            #expect(!line.hasPrefix("import ") && !line.hasPrefix("import{") && !line.hasPrefix("export"), "\(line)")
        }
        #expect(text.contains("data-version=\"\(BrowserAssets.version)\""))
        // The policy allows neither.
        #expect(!text.contains(" style=\"") && !text.contains(" onclick=\""))
    }

    @Test("a template without a place is not a page")
    func places() {
        for place in [" data-onward", "<style></style>", " data-status", "<tbody></tbody>"] {
            let template = Self.template.replacing(place, with: "")
            #expect(BrowserPage(template: template, style: "", script: "", version: "1") == nil, "\(place)")
        }
    }

    @Test(
        "a request gets the page if it names HTML and does not prefer JSON",
        arguments: [
            (nil, false), ("*/*", false), ("text/*", false), ("", false), ("text/html", true),
            ("TEXT/HTML;q=0.9, */*;q=0.1", true), ("text/html;q=0", false), ("application/json", false),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true),
            ("application/json, text/html", false), ("text/html, application/json;q=0.9", true),
            ("text/html;q=0.5, application/json;q=0.6", false), ("text/html;q=0.5, application/json;q=0", true),
            ("text/html, junk", false), ("image/avif,image/webp,*/*", false),
        ] as [(String?, Bool)])
    func negotiation(accept: String?, isPage: Bool) {
        #expect(BrowserPage.isRequested(by: accept.map { ["Accept": $0] } ?? [:]) == isPage)
    }
}
