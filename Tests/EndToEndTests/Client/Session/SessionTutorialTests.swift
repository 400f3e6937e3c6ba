import Foundation
import ResumableURLSession
import SystemCalls
import TestSupport
import Testing

// The parts of the tutorial "URLSession Tutorial: Getting Started" about pausing, resuming, canceling and progress,
// with the class `TrackCell` in place of the table.

private struct Track: Sendable {
    let previewURL: URL
    let index: Int
}

private final class Download: @unchecked Sendable {
    // Used by the test and the serial delegate queue, never at the same time.
    var isDownloading = false
    var progress: Float = 0
    var resumeData: Data?
    var task: URLSessionDownloadTask?
    let track: Track

    init(track: Track) {
        self.track = track
    }
}

private final class TrackCell: Sendable {
    let texts = Monitor<[String]>([])

    func updateDisplay(progress: Float, totalSize: String) {
        texts.withLock { $0.append(String(format: "%.1f%% of %@", progress * 100, totalSize)) }
    }
}

private final class DownloadService: @unchecked Sendable {
    // Used by the test and the serial delegate queue, never at the same time.
    var activeDownloads: [URL: Download] = [:]
    var downloadsSession: URLSession = .shared

    func startDownload(_ track: Track) {
        let download = Download(track: track)
        download.task = downloadsSession.downloadTask(with: track.previewURL)
        download.task?.resume()
        download.isDownloading = true
        activeDownloads[download.track.previewURL] = download
    }

    func cancelDownload(_ track: Track) {
        guard let download = activeDownloads[track.previewURL] else {
            return
        }

        download.task?.cancel()
        activeDownloads[track.previewURL] = nil
    }

    func pauseDownload(_ track: Track) {
        guard
            let download = activeDownloads[track.previewURL],
            download.isDownloading
        else {
            return
        }

        download.task?.cancel(byProducingResumeData: { data in
            download.resumeData = data
        })

        download.isDownloading = false
    }

    func resumeDownload(_ track: Track) {
        guard let download = activeDownloads[track.previewURL] else {
            return
        }

        if let resumeData = download.resumeData {
            download.task = downloadsSession.downloadTask(withResumeData: resumeData)
        } else {
            download.task =
                downloadsSession
                .downloadTask(with: download.track.previewURL)
        }

        download.task?.resume()
        download.isDownloading = true
    }
}

private final class SearchViewController: NSObject, URLSessionDownloadDelegate, @unchecked Sendable {
    // Used by the test and the serial delegate queue, never at the same time.
    let downloadService = DownloadService()
    let cells = [TrackCell(), TrackCell(), TrackCell()]
    let files = Monitor<[URL: [UInt8]]>([:])
    let endings = Monitor<[(URL, URLError.Code?)]>([])
    let directory: String

    // The only changed line: the original is URLSession(configuration:delegate:delegateQueue:).
    lazy var downloadsSession: URLSession = ResumableURLSession(
        configuration: .default, delegate: self, delegateQueue: nil)

    init(directory: String) {
        self.directory = directory
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didFinishDownloadingTo location: URL
    ) {
        guard let sourceURL = downloadTask.originalRequest?.url else {
            return
        }

        downloadService.activeDownloads[sourceURL] = nil
        let destinationURL = URL(fileURLWithPath: directory).appendingPathComponent(sourceURL.lastPathComponent)
        try? FileManager.default.copyItem(at: location, to: destinationURL)
        let bytes = FileManager.default.contents(atPath: destinationURL.path).map { [UInt8]($0) }
        files.withLock { $0[sourceURL] = bytes }
        files.notifyAll()
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        // 1
        guard
            let url = downloadTask.originalRequest?.url,
            let download = downloadService.activeDownloads[url]
        else {
            return
        }
        // 2
        download.progress =
            Float(totalBytesWritten) / Float(totalBytesExpectedToWrite)
        // 3
        let totalSize =
            ByteCountFormatter.string(
                fromByteCount: totalBytesExpectedToWrite,
                countStyle: .file)
        // 4
        let trackCell = cells[download.track.index]
        trackCell.updateDisplay(
            progress: download.progress,
            totalSize: totalSize)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        guard let url = task.originalRequest?.url else { return }
        endings.withLock { $0.append((url, (error as? URLError)?.code)) }
        endings.notifyAll()
    }
}

@Suite("Session: the URLSession tutorial", .blocking)
struct SessionTutorialTests {
    @Test("several tracks are downloaded at the same time, paused, resumed and canceled, with progress")
    func tracks() async throws {
        try await withServer { server in
            let fixture = try SessionFixture()
            let proxy = try StallingProxy(to: server, after: 1_500_000)
            var tracks: [Track] = []
            var contents: [[UInt8]] = []
            for index in 0..<3 {
                let bytes = Payload.bytes(4_000_000, seed: UInt64(index + 1))
                try server.publish(bytes, as: "track\(index).m4a")
                contents.append(bytes)
                tracks.append(Track(previewURL: try proxy.url("/files/track\(index).m4a"), index: index))
            }
            let controller = SearchViewController(directory: fixture.directory.path)
            controller.downloadsSession = fixture.session(controller)
            let service = controller.downloadService
            service.downloadsSession = controller.downloadsSession
            for track in tracks { service.startDownload(track) }
            for track in tracks {
                #expect(eventually { controller.cells[track.index].texts.withLock { !$0.isEmpty } })
            }
            service.pauseDownload(tracks[0])
            service.pauseDownload(tracks[1])
            service.cancelDownload(tracks[2])
            #expect(eventually { controller.endings.withLock { $0.count == 3 } })
            #expect(controller.endings.withLock { $0.allSatisfy { $0.1 == .cancelled } })
            #expect(service.activeDownloads[tracks[0].previewURL]?.resumeData != nil)
            #expect(service.activeDownloads[tracks[1].previewURL]?.resumeData != nil)
            #expect(service.activeDownloads.count == 2)
            proxy.release()
            service.resumeDownload(tracks[0])
            service.resumeDownload(tracks[1])
            #expect(eventually { controller.endings.withLock { $0.count == 5 } })
            for index in 0..<2 {
                let bytes = controller.files.withLock { $0[tracks[index].previewURL] }
                expectSame(bytes ?? [], contents[index])
                #expect(controller.cells[index].texts.withLock { $0.last } == "100.0% of 4 MB")
            }
            #expect(controller.files.withLock { $0.count } == 2)
            #expect(eventually { fixture.stored.isEmpty })
        }
    }
}
