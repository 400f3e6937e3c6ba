import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls

/// One page of the list of a folder, as Onward's server sends it: a JSON array of objects.
struct FolderListing: Sendable, Hashable {
    struct Entry: Sendable, Hashable, Decodable {
        var name: String
        /// `file` or `directory`.
        var type: String
        /// The size of a file in bytes.
        var size: Int64?
        /// The modification time, as in `Last-Modified`.
        var modified: String?
    }

    /// The maximum size of a page in bytes.
    static let maxSize = 16 << 20

    var entries: [Entry]
    /// The absolute URI of the next page; `nil` on the last page.
    var next: String?

    /// Reads the response to a request for a page.
    /// - Parameter uri: the URI of the request.
    /// - Throws: a failure with status 69 if the content is not such a list, or if the next page is at another server,
    ///   which must not get the credentials for this one.
    init(_ response: TransferResponse, isComplete: Bool, from uri: String) throws(CommandFailure) {
        guard isComplete, let entries = try? JSONDecoder().decode([Entry].self, from: Data(response.content)) else {
            let type =
                response.fields["Content-Type"].map { " It has the media type \(DisplayText.printable($0))." } ?? ""
            throw CommandFailure(
                .unavailable, "listing-unusable",
                "The response is not a list of files in JSON, as servers of Onward send it.\(type)")
        }
        self.entries = entries
        guard let link = response.link("next", from: uri) else { return }
        guard link.isSameOrigin, link.uri != uri else {
            throw CommandFailure(
                .unavailable, "listing-unusable",
                "The link to the next page of the list leads to \(link.isSameOrigin ? "the same page" : "another server"), so"
                    + " the remaining files are not transferred."
            )
        }
        next = link.uri
    }
}

extension FolderListing.Entry {
    /// The name of the entry in a directory of this machine.
    /// - Throws: a failure with status 69 if it could name anything else than an entry of that directory.
    func fileName() throws(CommandFailure) -> FilePath {
        let name = FilePath(name)
        guard name.isEntryName else {
            throw CommandFailure(
                .unavailable, "name-unusable", "'\(name)' cannot be the name of a file in a directory.")
        }
        return name
    }

    /// The modification time in seconds since 1970.
    func modificationTime(now: Int64) -> Int64? {
        modified.flatMap { HTTPDate(parsing: $0, relativeTo: HTTPDate(secondsSinceEpoch: now)) }?.secondsSinceEpoch
    }
}
