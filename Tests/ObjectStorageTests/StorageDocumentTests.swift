import TestSupport
import Testing

@testable import ObjectStorage

@Suite("Documents of object storages")
struct StorageDocumentTests {
    @Test("Elements, references, CDATA sections and comments are read")
    func reading() {
        let text = """
            \u{FEFF}<?xml version="1.0" encoding="UTF-8"?>
            <!-- a --><R xmlns="http://s3.amazonaws.com/doc/2006-03-01/" a='>'>
              <Key>a&amp;b&lt;&gt;&quot;&apos;&#13;&#x1F600;é<![CDATA[<&]]></Key><Empty/><Key >2</Key >
            </R>
            """
        let document = StorageDocument(Array(text.utf8))
        #expect(document?.name == "R")
        #expect(document?.all("Key").map(\.text) == ["a&b<>\"'\r\u{1F600}é<&", "2"])
        #expect(document?["Empty"] == "")
        #expect(document?["Missing"] == nil)
    }

    @Test(
        "Everything else is refused",
        arguments: [
            "", "text", "<a>", "<a></b>", "<a><b></a></b>", "<a/><b/>", "<a/>x", "<a b></a>", "<a b=c></a>",
            "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>", "<a>&x;</a>", "<a>&#xD800;</a>", "<a>&amp</a>", "<a>&</a>",
            "<a><!-- </a>", "<a><![CDATA[ </a>", "<a x='></a>", "<?xml", "< a/>", "<a><?php ?></a>",
            String(repeating: "<a>", count: 17) + String(repeating: "</a>", count: 17),
        ])
    func refusals(_ text: String) {
        #expect(StorageDocument(Array(text.utf8)) == nil)
    }

    @Test("Bytes that are not UTF-8 are refused, and no cut or changed document stops the program")
    func mutations() {
        #expect(StorageDocument(Array("<a>".utf8) + [0xFF] + Array("</a>".utf8)) == nil)
        var random = SeededGenerator(seed: 20)
        let document = Array("<?xml?><a b=\"c\"><d>&#38;&amp;</d><!-- e --><![CDATA[f]]></a>".utf8)
        for length in 0..<document.count { #expect(StorageDocument(Array(document[..<length])) == nil) }
        for _ in 0..<2000 {
            var changed = document
            for _ in 0...Int.random(in: 0..<3, using: &random) {
                changed[Int.random(in: 0..<changed.count, using: &random)] = document.randomElement(using: &random) ?? 0
            }
            _ = StorageDocument(changed)
        }
    }
}
