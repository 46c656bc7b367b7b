//! A disk that its file system makes read-only under running daemons, as ext4 does after an error: their health says so within seconds.
//! Once the disk is repaired they start again, and the job continues.
//!
//! The test mounts a file system of its own, so it needs root, a loop device and ext4. Elsewhere it says that it was left out.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use conclave_tests::cluster::Cluster;
use conclave_tests::study;
use conclave_tests::wait::{SOON, until};
use tempfile::TempDir;

use crate::EXE;

/// Time within which health has to say so.
const WITHIN: Duration = Duration::from_secs(5);
const BYTES: u64 = 64 << 20;
const NAMES: [&str; 2] = ["hospital-a", "hospital-b"];

/// A file system in a file, mounted.
struct Disk {
    folder: TempDir,
    is_mounted: bool,
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_mounted {
            // Lazily: a daemon of a failed test may still hold files.
            let _ = Command::new("umount").arg("-l").arg(self.place()).status();
        }
    }
}

impl Disk {
    /// Makes and mounts the disk.
    ///
    /// # Errors
    /// The reason why this machine does not allow it.
    fn new() -> Result<Self, String> {
        let mut disk = Self { folder: TempDir::new().expect("a folder"), is_mounted: false };
        std::fs::create_dir(disk.place()).expect("a folder");
        std::fs::File::create(disk.image()).and_then(|file| file.set_len(BYTES)).expect("a file");
        act(Command::new("mkfs.ext4").arg("-q").arg(disk.image()))?;
        disk.mount()?;
        match disk.trigger().is_some_and(|file| file.exists()) {
            true => Ok(disk),
            false => Err("the kernel has no trigger for an error of ext4".to_owned()),
        }
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    fn mount(&mut self) -> Result<(), String> {
        act(Command::new("mount").args(["-o", "loop,errors=remount-ro"]).arg(self.image()).arg(self.place()))?;
        self.is_mounted = true;
        Ok(())
    }

    /// The kernel's file that makes this file system find an error.
    fn trigger(&self) -> Option<PathBuf> {
        let (mounts, place) = (std::fs::read_to_string("/proc/mounts").ok()?, self.place());
        let device = mounts.lines().find_map(|line| {
            let mut words = line.split(' ');
            let device = words.next()?;
            (Path::new(words.next()?) == place).then(|| device.trim_start_matches("/dev/").to_owned())
        })?;
        Some(Path::new("/sys/fs/ext4").join(device).join("trigger_fs_error"))
    }

    fn fail(&self) {
        std::fs::write(self.trigger().expect("a mounted disk"), "planted").expect("an error of the file system");
    }

    /// Checks the file system and mounts it again, as an operator does.
    fn repair(&mut self) {
        until("the disk to be free", SOON, || act(Command::new("umount").arg(self.place())).is_ok());
        self.is_mounted = false;
        // It ends with 1 where it has corrected errors.
        let checked = Command::new("e2fsck").arg("-fy").arg(self.image()).output().expect("e2fsck");
        assert!(checked.status.code() < Some(4), "{}", String::from_utf8_lossy(&checked.stdout));
        self.mount().expect("a mount");
    }

    /// Moves a daemon's folder to the disk; its files keep their paths by a link.
    fn take(&self, folder: &Path) {
        let there = self.place().join(folder.file_name().expect("a name"));
        act(Command::new("cp").arg("-a").arg(folder).arg(&there)).expect("a copy");
        // The error loses what the disk does not hold yet.
        act(Command::new("sync").arg("-f").arg(&there)).expect("a sync");
        std::fs::remove_dir_all(folder).expect("a folder");
        std::os::unix::fs::symlink(&there, folder).expect("a link");
    }
}

fn act(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// The daemons' health checks, and what they print.
fn health(cluster: &Cluster, more: &[&str]) -> [(Option<i32>, String); 2] {
    let coordinator = ["__coordinator", "health", "--config", "coordinator/coordinator.toml"];
    let party = ["__party", "status", "--brief", "--config", "hospital-a/party.toml"];
    [&coordinator[..], &party].map(|args| {
        let output = cluster.run(&[args, more].concat());
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).expect("UTF-8"))
    })
}

#[test]
fn a_disk_that_turns_read_only_shows_in_health_within_seconds() {
    let mut disk = match Disk::new() {
        Ok(disk) => disk,
        Err(why) => {
            // Not by a macro, whose output a passing test would hide.
            let _ = writeln!(std::io::stderr(), "LEFT OUT: a read-only disk can't be tested here: {why}");
            return;
        }
    };
    let mut cluster = Cluster::new(EXE);
    cluster.signal_coordinator("TERM");
    cluster.wait_coordinator_exit();
    disk.take(&cluster.path("coordinator"));
    cluster.start_coordinator();
    for (seed, name) in NAMES.iter().enumerate() {
        let party = cluster.enrol_study(name, &study::records(300, seed as u64), 990.0);
        if party == 0 {
            disk.take(&cluster.path(name));
        }
        cluster.start_party(party);
    }
    let sampler = "chains = 2\ndraws = 1000\nwarmup = 50\nseed = 7\nlocate_share = 0.05";
    let job = cluster.submit_only(&study::job(&NAMES, sampler, "epsilon = 980\ndelta = 1e-6"));
    cluster.wait_status(&job, SOON, "some draws", |status| status["draws"].as_u64() > Some(10));
    assert_eq!(health(&cluster, &[]).map(|(code, _)| code), [Some(0); 2]);

    disk.fail();
    let failed = Instant::now();
    let mut red = [None; 2];
    while red.contains(&None) {
        for (is_red, (code, words)) in red.iter_mut().zip(health(&cluster, &[])) {
            assert!(is_red.is_some() || failed.elapsed() < WITHIN, "{code:?}: {words}");
            if code != Some(0) && is_red.is_none() {
                assert!(code == Some(1) && words.contains("read-only"), "{code:?}: {words}");
                *is_red = Some(failed.elapsed());
            }
        }
    }
    println!("health was red after {red:?}");
    // A restart would help nothing.
    assert_eq!(health(&cluster, &["--alive"]).map(|(code, _)| code), [Some(0); 2]);

    cluster.kill_coordinator();
    cluster.kill_party(0);
    disk.repair();
    cluster.start_coordinator();
    cluster.start_party(0);
    until("green health", SOON, || health(&cluster, &[]).iter().all(|(code, _)| *code == Some(0)));
    let status = cluster.wait_status(&job, 3 * SOON, "the end", |status| status["state"] == "finished");
    assert_eq!(status["draws"], 1000, "{status}");
    assert!(disk.is_mounted);
}
