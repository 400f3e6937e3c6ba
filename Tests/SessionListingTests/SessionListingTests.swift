import Foundation
import FoundationNetworking
import ResumableURLSession
import XCTest

final class SessionListingTests: XCTestCase {
    func testUnusableDownloadData() {
        let listing = ListingDownloads()
        listing.resumeData = Data("none".utf8)
        listing.resume()
        XCTAssertEqual(listing.isOver.wait(timeout: .now() + 10), .success)
        XCTAssertEqual(listing.failure?.code, NSURLErrorUnsupportedURL)
        listing.urlSession.invalidateAndCancel()
    }

    func testUnusableUploadData() {
        let listing = ListingUploads()
        listing.resumeData = Data("none".utf8)
        listing.resume()
        XCTAssertEqual(listing.isOver.wait(timeout: .now() + 10), .success)
        XCTAssertEqual(listing.failure?.code, NSURLErrorUnsupportedURL)
        listing.session.invalidateAndCancel()
    }

    func testNothingToResume() {
        let downloads = ListingDownloads()
        let download = downloads.urlSession.downloadTask(with: URL(fileURLWithPath: "/nowhere"))
        download.cancel()
        downloads.resume()
        XCTAssertNil(downloads.downloadTask)
        let uploads = ListingUploads()
        uploads.resume()
        XCTAssertNil(uploads.uploadTask)
    }
}
