/** A command as the list of all of them shows it. */
export interface ListedCommand {
  readonly name: string;
  /** With its arguments. */
  readonly term: string;
  readonly description: string;
}

/**
 * What `osl --help` lists without loading forty commands for it. Null here, where commands change: all are loaded. In the
 * package `release/bundle.ts` puts the list in the place of this file.
 */
export const LISTED: readonly ListedCommand[] | null = null;
