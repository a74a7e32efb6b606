import { GENESIS } from './format.js';
import { Frontier } from './frontier.js';

/** A place between two segments, with all that the records before it come to. */
export interface LogBase {
  /** Number of the segment before, 0 if none. */
  readonly segment: number;
  readonly epoch: number;
  readonly seq: number;
  readonly chain: Buffer;
  readonly frontier: Frontier;
}

/** The place before the first record. */
export const BEGINNING: LogBase = Object.freeze({
  segment: 0,
  epoch: 0,
  seq: 0,
  chain: GENESIS,
  frontier: new Frontier(),
});

/** What is signed already. */
export interface SignedState {
  /** Length of the checkpoints that stay, in bytes. */
  readonly end: number;
  /** Tree size of the last checkpoint there, -1 if none. */
  readonly lasting: number;
  /** Tree size of the newest one anywhere, -1 if none. */
  readonly newest: number;
}
