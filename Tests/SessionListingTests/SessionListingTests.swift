import Foundation
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

    /// The session also calls delegate methods whose completion handlers are not `@Sendable`, as in Apple's code.
    func testConnections() throws {
        let listing = ListingConnections()
        let delegate: URLSessionTaskDelegate = listing
        let session = listing.session
        let url = try XCTUnwrap(URL(string: "http://files.example/a"))
        let task = session.downloadTask(with: url)
        let space = URLProtectionSpace(
            host: "files.example", port: 80, protocol: "http", realm: nil,
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        let challenge = URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, error: nil,
            sender: UnusedSender())
        let answer = Answer()
        delegate.urlSession(session, task: task, didReceive: challenge) { disposition, _ in
            answer.disposition = disposition
        }
        XCTAssertEqual(answer.disposition, .cancelAuthenticationChallenge)
        listing.credentials = URLCredential(user: "user", password: "password", persistence: .none)
        delegate.urlSession(session, task: task, didReceive: challenge) { disposition, _ in
            answer.disposition = disposition
        }
        XCTAssertEqual(answer.disposition, .useCredential)
        let response = try XCTUnwrap(
            HTTPURLResponse(url: url, statusCode: 302, httpVersion: "HTTP/1.1", headerFields: nil))
        delegate.urlSession(
            session, task: task, willPerformHTTPRedirection: response, newRequest: URLRequest(url: url)
        ) { answer.url = $0?.url }
        XCTAssertEqual(listing.redirections, [url])
        XCTAssertEqual(answer.url, url)
        session.invalidateAndCancel()
    }

    /// The metrics have a request without a response, because no program listens at the port.
    func testMetrics() throws {
        let listing = ListingConnections()
        let url = try XCTUnwrap(URL(string: "http://127.0.0.1:1/a"))
        listing.session.downloadTask(with: url).resume()
        XCTAssertEqual(listing.isOver.wait(timeout: .now() + 10), .success)
        XCTAssertEqual(listing.requestDurations.first, .some(nil))
        listing.session.invalidateAndCancel()
    }
}

/// Used by one thread only.
private final class Answer: @unchecked Sendable {
    var disposition: URLSession.AuthChallengeDisposition?
    var url: URL?
}

private final class UnusedSender: NSObject, URLAuthenticationChallengeSender {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
    func cancel(_ challenge: URLAuthenticationChallenge) {}
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}
