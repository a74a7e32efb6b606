import { Option } from 'commander';
import type { ServerFlags } from '../../flags.js';

/** Of the commands that look at policies in the control database. */
export interface PolicyFlags extends Pick<ServerFlags, 'manifest'> {
  readonly tenant?: string;
  readonly json?: true;
}

/** Of those that write there. */
export interface AuthorFlags extends PolicyFlags {
  readonly author?: string;
  readonly comment?: string;
}

export interface PushFlags extends AuthorFlags {
  readonly activate?: true;
}

export interface PolicyDiffFlags extends PolicyFlags, Pick<ServerFlags, 'policy' | 'dataDir'> {
  /** Tells of the questions since then; a time as `osl audit search` takes it. */
  readonly since?: string;
  readonly dir?: string;
}

export function tenantOption(): Option {
  return new Option('--tenant <name>', 'whose policy (default: as the manifest says, or the only one there)');
}

export function authorOption(): Option {
  return new Option('--author <name>', 'who does it, for the history (default: user@host)');
}

export function commentOption(): Option {
  return new Option('--comment <text>', 'why, for the history');
}
