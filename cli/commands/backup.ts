import type { Command } from 'commander';
import { dataDirOption, wholeNumber } from '../flags.js';

const BACKUP_HELP = `
A server may run meanwhile. Keys are left out unless --with-keys asks for them; the file is readable by its owner alone
either way. It is a tar file with the data directory below data/, and SHA256SUMS, which sha256sum -c checks. Databases of
connectors that are not embedded, the manifest, the policy and settings are not in it.

Examples:
  $ osl backup /backups/                # osl-backup-<time>.tar
  $ osl backup osl.tar --with-keys`;

const RESTORE_HELP = `
Looks at every byte before it writes, verifies the audit log, and restores into a directory that is not there yet, or
empty: all of it or nothing. The restored log is kept beside a new one, which the first start begins: what was recorded
after the backup is in the original alone. Exit status: 0 restored, 4 the backup is damaged, 2 something stands there.

Example:
  $ osl restore osl.tar --data-dir /var/lib/osl`;

export function addBackup(program: Command): void {
  program
    .command('backup')
    .argument('<file-or-dir>', 'where; a directory takes a file that is named by the time')
    .addOption(dataDirOption())
    .option('--with-keys', 'the keys of tokens, masks and fingerprints too')
    .option(
      '--wait <seconds>',
      'how long to try while an embedded database is written to (60)',
      wholeNumber(0, 86_400),
    )
    .option('--json', 'as JSON')
    .addHelpText('after', BACKUP_HELP)
    .action(async (file: string, flags) => (await import('../backup/backup.js')).runBackup(file, flags));
}

export function addRestore(program: Command): void {
  program
    .command('restore')
    .argument('<file>', 'the backup')
    .addOption(dataDirOption())
    .option('--json', 'as JSON')
    .addHelpText('after', RESTORE_HELP)
    .action(async (file: string, flags) => (await import('../backup/restore.js')).runRestore(file, flags));
}
