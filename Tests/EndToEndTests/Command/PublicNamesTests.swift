import Foundation
import Gateway
import ResumableTransfer
import ResumableURLSession
import Testing
import TransferServer

/// The public types of all products, in a file that also imports Foundation. If Foundation has a type of the same name,
/// a program that imports both has to qualify it, and this file does not compile. The types of ResumableURLSession with
/// names of FoundationNetworking replace the types there, which it exports.
@Suite("Public names")
struct PublicNamesTests {
    private static let types: [Any.Type] = [
        // TransferServer and what it exports
        Acceptance.self, AccessOperation.self, AddressBlock.self, AuthorizationRefusal.self, (any Authorizer).self,
        CacheControl.self, ContentChunks.self, ContentRejection.self, (any ContentStream).self, CreationStyle.self,
        Dialect.self, Durability.self, EntityTag.self,
        Errno.self, Fields.self, FilesHandler.self, FormLimits.self, FormPart.self,
        Health.self, IPAddress.self, Identity.self, InProcessServer.self,
        LogFormat.self, LogLevel.self, LogSink.self, Method.self, PathSegments.self, ProblemDetails.self,
        ProtocolVersion.self, PublicBase.self, Publication.self, PublicationVerdict.self, PublishedFile.self,
        PublishedName.self,
        ReceivedUpload.self, RequestHead.self, RequestTarget.self, ResourcePolicy.self, Response.self,
        RetryPolicy.self, Server.self, ServerConfiguration.self, ServerCredentials.self, SocketAddress.self,
        SpaceShortage.self, Status.self, StoreConfiguration.self, StoreError.self, TLSError.self, TLSTrust.self,
        Target.self, (any TargetHandler).self, TargetRequest.self, TargetUnavailable.self, TokenAuthorizer.self,
        TokenList.self, TokenScope.self, UploadEvent.self, UploadID.self, UploadLimits.self, UploadProposal.self,
        UploadStore.self,
        // Gateway
        ApplicationAuthorizer.self, Destination.self, DestinationURL.self, EventDelivery.self, EventDestination.self,
        EventSecret.self, EventSettings.self, GatewayAuthorizer.self, GatewayHandler.self, Origin.self,
        PublicationCheck.self, PublicationCheckSettings.self, Route.self, SettingError.self,
        // ResumableTransfer
        ClientCertificate.self, DataSource.self, DigestAlgorithm.self, Download.self, DownloadDestination.self,
        DownloadResult.self, DownloadStream.self, FileSource.self, HTTPVersion.self, MockFailure.self,
        MockRequest.self, MockResponse.self, MockTransport.self, RequestMetrics.self, ResumeData.self,
        RetryDecision.self, SequenceSource.self, SourceError.self, TransferLogEntry.self, TransferProgress.self,
        TransferStore.self, (any Transfer).self, TransferClient.self,
        TransferError.self, CurlError.self, TransferEvent.self, TransferRecord.self, TransferRequest.self,
        TransferResponse.self,
        Upload.self, UploadResult.self, (any UploadSource).self,
        // ResumableURLSession, with the types that replace those of FoundationNetworking
        ResumableURLSession.self, (any URLSessionDataDelegate).self, (any URLSessionDownloadDelegate).self,
        (any URLSessionTaskDelegate).self, URLSessionTaskMetrics.self, URLSessionTaskTransactionMetrics.self,
    ]

    @Test("The list `types` has every public type of the products, so none of them has a name of Foundation")
    func complete() throws {
        let sources = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../Sources")
        let targets = [
            "TransferServer", "UploadStorage", "ResumableUpload", "HTTPSemantics", "SystemCalls", "TLS",
            "HTTPTransport", "Gateway", "ResumableTransfer", "ResumableURLSession",
        ]
        let declaration = /^public (?:final |indirect )?(?:struct|class|enum|protocol|actor) (\w+)/
            .anchorsMatchLineEndings()
        var declared: Set<String> = []
        for target in targets {
            let directory = sources.appending(path: target)
            let paths = try FileManager.default.subpathsOfDirectory(atPath: directory.path)
            for path in paths where path.hasSuffix(".swift") {
                let text = try String(contentsOf: directory.appending(path: path), encoding: .utf8)
                declared.formUnion(text.matches(of: declaration).map { String($0.output.1) })
            }
        }
        let listed = Set(Self.types.map { "\($0)".replacing("any ", with: "") })
        #expect(listed.symmetricDifference(declared).sorted() == [])
    }
}
