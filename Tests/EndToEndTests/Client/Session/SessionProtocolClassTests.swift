import Foundation
import FoundationNetworking
import ResumableURLSession
import Testing

@Suite("Session: protocol classes", .blocking)
struct SessionProtocolClassTests {
    private func configuration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [HandledProtocol.self] + (configuration.protocolClasses ?? [])
        return configuration
    }

    @Test("uploads and downloads that a protocol class of the application handles fail, and the error has the remedy")
    func refused() async throws {
        let fixture = try SessionFixture()
        let recorder = SessionRecorder()
        let session = fixture.session(recorder, configuration: configuration())
        let request = try SessionFixture.request("http://127.0.0.1:1/handled")
        let upload = session.uploadTask(with: request, from: Data([1]))
        let download = session.downloadTask(with: request)
        upload.resume()
        download.resume()
        for task in [upload, download] {
            let error = try recorder.error(of: task)
            #expect(error.code == .unsupportedURL)
            #expect(error.localizedDescription.contains("HandledProtocol"))
            #expect(error.localizedDescription.contains("protocolClasses"))
        }
        await #expect { try await session.upload(for: request, from: Data([1])) } throws: {
            ($0 as? URLError)?.code == .unsupportedURL
        }
        await #expect { try await session.download(for: request) } throws: {
            ($0 as? URLError)?.code == .unsupportedURL
        }
    }

    @Test("other requests of the session are transferred, and data tasks use the class as before")
    func others() async throws {
        let file = ScriptedFile(bytes: Payload.bytes(1000))
        let server = try ScriptedServer { try file.serve($0, $1) }
        let fixture = try SessionFixture()
        let session = fixture.session(configuration: configuration())
        let (url, _) = try await session.download(for: try SessionFixture.request(server.url + "/a"))
        expectSame([UInt8](try Data(contentsOf: url)), file.bytes)
        let (data, _) = try await session.data(for: try SessionFixture.request("http://127.0.0.1:1/handled"))
        #expect(String(decoding: data, as: UTF8.self) == "handled")
    }
}

private final class HandledProtocol: URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.path == "/handled" }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url,
            let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: nil)
        else { return }
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data("handled".utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}
