/// The files that the server serves to browsers. They are embedded in the program.
package enum BrowserAssets {
    /// The version in the URL of the module, which is the version of Onward.
    package static let version = "0.2.0"

    /// The JavaScript client, and its types for TypeScript.
    package static var module: [UInt8] { PackageResources.onward_js }
    package static var moduleTypes: [UInt8] { PackageResources.onward_d_ts }

    /// The parts of the web interface.
    package static var page: [UInt8] { PackageResources.page_html }
    package static var pageStyle: [UInt8] { PackageResources.page_css }
    /// The files of the script use declarations of each other, so the server joins them to one file.
    package static var pageScript: [UInt8] {
        [
            PackageResources.page_elements_js, PackageResources.page_session_js, PackageResources.page_folder_js,
            PackageResources.page_viewer_js, PackageResources.page_usage_js, PackageResources.page_sources_js,
            PackageResources.page_uploads_js, PackageResources.page_upload_rows_js, PackageResources.page_js,
        ].flatMap { $0 }
    }
    package static var pageTexts: [UInt8] { PackageResources.texts_js }
}
