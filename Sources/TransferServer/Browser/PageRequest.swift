import HTTPSemantics
import UploadStorage

extension TransferService {
    /// The web interface, if the request, a GET or a HEAD, gets it in place of a directory of files or an error; otherwise `nil`. In
    /// place of an error about a file, the page is that of the directory of the file.
    func pageRequest(_ request: RequestContext, at route: RequestRoute) -> PageRequest? {
        guard let page, BrowserPage.isRequested(by: request.fields), let files = routes.filesTarget?.target
        else { return nil }
        // The directory, and the relative reference to it from the URL of the request.
        let (folder, link): (String, String)
        switch route {
        case .home: (folder, link) = (files.path, "./files/")
        case .target(_, let target) where target.prefix == files.prefix:
            let isFilesWithoutSlash = target.path + "/" == files.path
            folder =
                isFilesWithoutSlash
                ? files.path
                : target.path.utf8.lastIndex(of: UInt8(ascii: "/")).map {
                    String(target.path[...$0])
                } ?? files.path
            link = isFilesWithoutSlash ? "./files/" : "./"
        default: return nil
        }
        let base = request.origin.base.path
        return PageRequest(page: page, base: base + routes.ownBase, folder: base + folder, link: link)
    }
}

/// The page with a row for each entry, in the order of the file system. So it is useful before its script runs, and
/// without it.
struct PageListing: ListingFormat {
    /// A browser needs seconds to lay out more rows. The script requests the other entries in pages of JSON.
    static let maxRows = 10_000

    let request: PageRequest
    var maxEntries: Int? { Self.maxRows }

    func appendStart(to bytes: inout [UInt8]) { request.page.appendStart(request.attributes, [], to: &bytes) }

    func append(_ entry: PublishedEntry, isFirst: Bool, to bytes: inout [UInt8]) {
        let date = HTTPDate(secondsSinceEpoch: entry.modifiedSeconds).internetDate
        let size = String(entry.size)
        bytes += (entry.isDirectory ? "<tr class=\"folder\"" : "<tr data-size=\"").utf8
        if !entry.isDirectory {
            bytes += size.utf8
            bytes += "\"".utf8
        }
        bytes += " data-modified=\"".utf8
        bytes += String(entry.modifiedSeconds).utf8
        bytes += "\"><td><a href=\"".utf8
        bytes.appendHTML(request.link)
        bytes.appendHTML(entry.reference)
        bytes += "\">".utf8
        bytes.appendHTML(entry.name)
        bytes += "</a></td><td>".utf8
        if !entry.isDirectory { bytes += size.utf8 }
        bytes += "</td><td><time datetime=\"".utf8
        bytes += date.utf8
        bytes += "\">".utf8
        bytes += date.utf8.prefix(10)
        bytes += " ".utf8
        bytes += date.utf8.dropFirst(11).prefix(5)
        bytes += "</time></td></tr>\n".utf8
    }

    func appendEnd(isComplete: Bool, to bytes: inout [UInt8]) {
        if !isComplete { bytes += "<tr class=\"more\" data-more></tr>\n".utf8 }
        bytes += request.page.end
    }
}
