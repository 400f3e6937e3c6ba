import Foundation
import Testing

@Suite("Articles") struct ArticleTests {
    @Test("the code in the article on relaunches is also in a program that the tests build and run")
    func relaunch() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
        let article = try String(
            contentsOf: root.appending(
                path: "Sources/ResumableTransfer/ResumableTransfer.docc/ResumingTransfersAfterARelaunch.md"),
            encoding: .utf8)
        let program = try String(
            contentsOf: root.appending(path: "Tests/TransferRecipes/RelaunchRecipe.swift"), encoding: .utf8)
        let blocks = article.components(separatedBy: "```swift\n").dropFirst().compactMap {
            $0.components(separatedBy: "```").first
        }
        // The program does not contain the two blocks that call it.
        let compared = blocks.filter { block in !["let result", "let transfers"].contains { block.hasPrefix($0) } }
        #expect(blocks.count == 8 && compared.count == 6)
        for block in compared { #expect(program.contains(block), "\(block)") }
    }
}
