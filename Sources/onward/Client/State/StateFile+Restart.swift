import ResumableTransfer

extension StateFile {
    /// Forgets what an earlier run left, on the server too as far as that can be done quickly.
    /// - Parameter request: the request of the new transfer; its credentials authorize the deletion.
    /// - Throws: if the user named a file that is none of a state of this command.
    func forget(
        _ settings: ClientSettings, _ request: TransferRequest, _ report: TransferReport
    ) async throws(CommandFailure) {
        let earlier: SavedTransfer?
        do throws(CommandFailure) {
            earlier = try load()
        } catch {
            // A file that the user named may be anything.
            if isChosen { throw error }
            earlier = nil
        }
        if let earlier {
            var brief = settings.completed(by: earlier.options)
            brief.retries = 0
            brief.stallTimeout = 5
            let client = try brief.client()
            let what = earlier.identity.kind == .put ? "upload" : "partial file"
            do throws(TransferError) {
                let isDeleted = try await client.discard(earlier.resumeData, request: request)
                if !isDeleted && settings.hasOtherCredentials(than: earlier.options) {
                    report.warn(
                        "the upload of an earlier run could not be deleted: the server does not know it for these"
                            + " credentials, and it was started with other ones: \(earlier.options.credentials)")
                }
            } catch {
                report.warn("the \(what) of an earlier run could not be deleted: \(CommandFailure(error).message)")
            }
            await client.shutDown()
        }
        remove()
    }
}
