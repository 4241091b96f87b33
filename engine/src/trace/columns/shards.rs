//! The files a trace of columns is made of: one, or those of a folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::trace::TraceError;
use crate::trace::columns::Kind;
use crate::trace::lines::start_of;
use crate::trace::scan::shown;

/// One file of columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) path: PathBuf,
    /// Its name as messages and tables show it.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Its size in bytes.
    pub(crate) bytes: u64,
}

/// Endings of files of columns, for telling them from what else lies in a folder.
const ENDINGS: [&str; 4] = ["parquet", "arrow", "ipc", "feather"];

/// First bytes of files that are nearly of either kind, and what to do with them.
const NEARLY: [(&[u8], &str); 2] = [
    (
        b"\xff\xff\xff\xff",
        "is an Arrow stream; right would be an Arrow file, which Python makes of it: \
         `table = pyarrow.ipc.open_stream(open(OLD, 'rb')).read_all()` and then \
         `pyarrow.feather.write_feather(table, NEW, 'uncompressed')`",
    ),
    (
        b"FEA1",
        "is a Feather file of version 1; right would be one of version 2, which Python makes of \
         it: `pyarrow.feather.write_feather(pyarrow.feather.read_table(OLD), NEW, 'uncompressed')`",
    ),
];

/// What a file on disk begins like; `None` for any other kind, and for a folder.
///
/// # Errors
/// When it cannot be read, or is one that has to be converted first.
pub(crate) fn kind_of(path: &Path) -> Result<Option<Kind>, TraceError> {
    let kind = Kind::of_file(path)?;
    let start = start_of(path, 4)?.unwrap_or_default();
    match NEARLY.iter().find(|(magic, _)| start == *magic) {
        Some((_, words)) => Err(TraceError::file(path, *words)),
        None => Ok(kind),
    }
}

/// The files at `path`, in order of their names. Files of a folder that are hidden, or have another
/// ending, are left alone; one that has the ending must be what it says.
pub(crate) fn shards(path: &Path) -> Result<Vec<Shard>, TraceError> {
    let meta = path.metadata().map_err(|error| TraceError::io("open", path, error))?;
    if !meta.is_dir() {
        return Ok(vec![shard(path)?]);
    }
    let list = |error| TraceError::io("list", path, error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(path).map_err(list)? {
        let path = entry.map_err(list)?.path();
        let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && has_ending(&path) && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    if paths.is_empty() {
        return Err(TraceError::file(
            path,
            "has no file that ends in .parquet, .arrow or .ipc; right would be the files of one \
             Baseten trace",
        ));
    }
    paths.iter().map(|path| shard(path)).collect()
}

/// Whether a name ends like that of a file of columns.
pub(crate) fn has_ending(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
}

fn shard(path: &Path) -> Result<Shard, TraceError> {
    let meta = path.metadata().map_err(|error| TraceError::io("open", path, error))?;
    let Some(kind) = kind_of(path)? else {
        let found = match start_of(path, 8)? {
            Some(start) if !start.is_empty() => format!(
                "is no Parquet or Arrow file: it begins with {:?}; right would be PAR1 or ARROW1",
                shown(&start)
            ),
            _ => "is empty; right would be a Parquet or Arrow file".to_owned(),
        };
        return Err(TraceError::file(path, found));
    };
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    Ok(Shard { path: path.to_owned(), name, kind, bytes: meta.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_files_of_columns_in_order() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, bytes: &[u8]| {
            fs::write(folder.path().join(name), bytes).expect("written");
        };
        let words = shards(folder.path()).expect_err("nothing").to_string();
        assert!(words.contains("has no file that ends in .parquet"), "{words}");
        for (name, bytes) in [
            ("b.parquet", &b"PAR1xx"[..]),
            ("a.ARROW", b"ARROW1"),
            ("_SUCCESS", b""),
            (".c.parquet", b""),
            ("README.md", b"x"),
        ] {
            write(name, bytes);
        }
        let found: Vec<_> = shards(folder.path())
            .expect("two")
            .into_iter()
            .map(|shard| (shard.name, shard.kind, shard.bytes))
            .collect();
        let expected =
            [("a.ARROW".to_owned(), Kind::Arrow, 6), ("b.parquet".to_owned(), Kind::Parquet, 6)];
        assert_eq!(found, expected);
        write("c.parquet", b"");
        let words = shards(folder.path()).expect_err("empty").to_string();
        assert!(words.contains("c.parquet: is empty"), "{words}");
        write("c.parquet", b"hello, world");
        let words = shards(folder.path()).expect_err("a text").to_string();
        let right = "is no Parquet or Arrow file: it begins with \"hello, w\"";
        assert!(words.contains(right), "{words}");
        write("c.parquet", b"\xff\xff\xff\xff\x10\x00\x00\x00");
        let words = shards(folder.path()).expect_err("a stream").to_string();
        assert!(words.contains("c.parquet: is an Arrow stream; right would be an"), "{words}");
    }
}
