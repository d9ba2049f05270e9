//! The beginning of a first fetch: what is cheaper to take from elsewhere than from the repository,
//! which are the metadata of another conversion, or a bundle.

use crate::bundle::{BundleContent, StorePart, open_bundle_content};
use crate::conversion::{
    ConversionOptions, ConversionSummary, FetchNotice, Phase, Progress, convert,
};
use crate::fetch_error::FetchError;
use crate::fetch_options::{CloneSource, FetchOptions};
use crate::git::repository::GitDirectory;
use crate::location::open_peer;
use crate::object_id::Node;
use crate::peer::Peer;
use crate::revision::ChangeError;
use crate::shared_metadata::{SharedMetadataError, choose_metadata, take_metadata};
use crate::unpacked_store::UnpackedStore;
use crate::wire::open_web_file;
use std::ffi::OsStr;
use std::path::Path;

/// Takes shared metadata, a bundle or the files of a store into a repository without metadata.
/// `None`: there is none of these, or it cannot be taken; then all changes come from the repository
/// itself.
pub(crate) fn begin_clone(
    repository: &GitDirectory,
    peer: &mut dyn Peer,
    wanted: &[Node],
    options: &FetchOptions<'_>,
    progress: &mut dyn Progress,
) -> Result<Option<ConversionSummary>, FetchError> {
    if let Some((manifest, is_own)) = metadata_manifest(peer, options)? {
        let taken = take_shared(repository, &manifest, is_own, options, progress);
        let Err(error) = taken else { return Ok(Some(ConversionSummary::default())) };
        if options.requires_metadata {
            return Err(error.into());
        }
        report_failure(error, progress);
        progress.report(&FetchNotice::CompleteFetch);
    }
    let begun = match &options.bundle {
        CloneSource::Repository => Ok(None),
        CloneSource::Recommended => take_clone_bundle(repository, peer, options, progress),
        CloneSource::Given(url) => convert_given(repository, url, options, progress)
            .map_err(|error| FetchError::CloneBundle { url: url.clone(), error: Box::new(error) }),
    };
    match begun {
        Ok(Some(converted)) if converted.changesets > 0 => Ok(Some(converted)),
        Ok(_) => convert_store(repository, peer, wanted, options.conversion, progress),
        Err(error) if error.is_of_source() && !options.requires_bundle => {
            progress.report(&FetchNotice::CloneBundleFailed { message: error.to_string() });
            convert_store(repository, peer, wanted, options.conversion, progress)
        }
        Err(error) => Err(error),
    }
}

/// Converts the first of the bundles that a repository recommends and that can be read.
pub(crate) fn take_clone_bundle(
    repository: &GitDirectory,
    peer: &mut dyn Peer,
    options: &FetchOptions<'_>,
    progress: &mut dyn Progress,
) -> Result<Option<ConversionSummary>, FetchError> {
    let mut failed: Option<FetchError> = None;
    for url in peer.clone_bundles()? {
        if let Some(error) = failed.take() {
            progress.report(&FetchNotice::CloneBundleFailed { message: error.to_string() });
        }
        match convert_recommended(repository, peer, &url, options, progress) {
            Ok(None) => {}
            Err(error) if error.is_of_source() => {
                failed = Some(FetchError::CloneBundle { url, error: Box::new(error) });
            }
            ended => return ended,
        }
    }
    failed.map_or(Ok(None), Err)
}

fn convert_recommended(
    repository: &GitDirectory,
    peer: &mut dyn Peer,
    url: &str,
    options: &FetchOptions<'_>,
    progress: &mut dyn Progress,
) -> Result<Option<ConversionSummary>, FetchError> {
    let received = peer.received_bytes();
    let opened = match peer.open_clone_bundle(url).transpose() {
        Some(opened) => Some(opened),
        // The server of the bundle is another one.
        None => options.servers.map(|settings| {
            let read = open_web_file(url, settings(url)?.http, received)?;
            open_bundle_content(read)
        }),
    };
    if opened.is_some() {
        progress.report(&FetchNotice::CloneBundle { url: url.to_owned() });
    }
    match opened.transpose()? {
        None => Ok(None),
        Some(BundleContent::Changes { mut source, .. }) => {
            Ok(Some(convert(repository, &mut *source, options.conversion, progress)?))
        }
        // The bundle is older than the heads, so that it is taken as a whole.
        Some(BundleContent::Store(mut part)) => {
            let mut store = unpack(&mut part, repository.directory(), progress)?;
            let mut changes = store.changes(&[], &[])?;
            Ok(Some(convert(repository, &mut *changes, options.conversion, progress)?))
        }
    }
}

fn unpack(
    part: &mut StorePart<'_>,
    directory: &Path,
    progress: &mut dyn Progress,
) -> Result<UnpackedStore, ChangeError> {
    UnpackedStore::unpack(part, directory, &mut |done, total| {
        progress.advance(Phase::Store, done, Some(total));
    })
}

/// Converts what leads to `wanted` from the files of a repository's store. `None`: the repository
/// does not send them, or they are not wanted.
fn convert_store(
    repository: &GitDirectory,
    peer: &mut dyn Peer,
    wanted: &[Node],
    options: ConversionOptions,
    progress: &mut dyn Progress,
) -> Result<Option<ConversionSummary>, FetchError> {
    let Some(mut part) = peer.store_files()? else { return Ok(None) };
    let mut store = unpack(&mut part, repository.directory(), progress)?;
    drop(part);
    let converted = convert(repository, &mut *store.changes(wanted, &[])?, options, progress)?;
    Ok((converted.changesets > 0).then_some(converted))
}

/// Converts the bundle that the user names.
fn convert_given(
    repository: &GitDirectory,
    url: &str,
    options: &FetchOptions<'_>,
    progress: &mut dyn Progress,
) -> Result<Option<ConversionSummary>, FetchError> {
    let Some(servers) = options.servers else {
        return Err(ChangeError::new_unsupported(format!("a bundle at {url}")).into());
    };
    progress.report(&FetchNotice::CloneBundle { url: url.to_owned() });
    let mut bundle = open_peer(OsStr::new(url), servers)?;
    bundle.set_scratch_folder(repository.directory());
    progress.set_received(bundle.received_bytes());
    let mut changes = bundle.changes(&[], &[])?;
    Ok(Some(convert(repository, &mut *changes, options.conversion, progress)?))
}

/// Returns lines that name shared metadata, and whether the user gave them.
fn metadata_manifest(
    peer: &mut dyn Peer,
    options: &FetchOptions<'_>,
) -> Result<Option<(Vec<u8>, bool)>, FetchError> {
    match &options.metadata {
        CloneSource::Given(lines) => Ok(Some((lines.clone().into_bytes(), true))),
        CloneSource::Repository => Ok(None),
        // A bundle that the user names goes before what the server recommends.
        CloneSource::Recommended if matches!(options.bundle, CloneSource::Given(_)) => Ok(None),
        CloneSource::Recommended => {
            let manifest = peer.shared_metadata()?;
            Ok(manifest.filter(|lines| !lines.is_empty()).map(|lines| (lines, false)))
        }
    }
}

fn take_shared(
    repository: &GitDirectory,
    manifest: &[u8],
    is_own: bool,
    options: &FetchOptions<'_>,
    progress: &mut dyn Progress,
) -> Result<(), SharedMetadataError> {
    let place = choose_metadata(manifest, is_own, &options.url)?;
    progress.report(&FetchNotice::SharedMetadata { url: place.url.clone() });
    take_metadata(&mut repository.share(), &place, options, progress)
}

fn report_failure(error: SharedMetadataError, progress: &mut dyn Progress) {
    let message = error.to_string();
    match error {
        SharedMetadataError::NoPlace(_) => {
            progress.report(&FetchNotice::SharedMetadataSkipped { message });
        }
        SharedMetadataError::Transfer { output } => {
            progress.report(&FetchNotice::GitOutput { text: output });
            progress.report(&FetchNotice::SharedMetadataFailed { message });
        }
        _ => progress.report(&FetchNotice::SharedMetadataFailed { message }),
    }
}
