import { type ErrorName, InternalError, QueryError, queryError } from 'osl-compiler';
import type { ServiceLog } from '../../base/log.js';
import { FairSlots } from '../../base/threads/fair-slots.js';
import type { Judgement, Proposal, PublishStep, Suggestion } from '../authoring/index.js';
import type { AdoptionCandidate } from '../discovery/index.js';
import type { FragmentDocument, ManifestDocument } from '../manifest/index.js';
import type { Model } from '../served-model.js';
import { DraftingEnded, DraftingThread } from './drafting-thread.js';
import type { BaselineMessage, DraftReply, DraftTask, DraftTaskResults, StepResult } from './messages.js';

/** The served model that drafts are compared with, and the documents it is compiled from. */
export interface DraftBaseline extends Model {
  readonly base: ManifestDocument;
  readonly objects: FragmentDocument;
}

/**
 * Processes drafts, fairly among authors. Faults of a draft are in the result; errors thrown are QueryErrors for the
 * author: E0511 for a draft that takes too long or too much memory, E4290 for too many of one author, and those of
 * the task itself.
 */
export interface DraftCompiler {
  judge(proposal: Proposal, served: DraftBaseline, author: string): Promise<Judgement>;
  /** Throws as `workedOut`. */
  workOut(step: PublishStep, served: DraftBaseline, author: string): Promise<StepResult>;
  suggestRelation(candidate: AdoptionCandidate, served: DraftBaseline, author: string): Promise<Suggestion>;
  suggestTerm(term: string, served: DraftBaseline, author: string): Promise<Suggestion | null>;
  close(): Promise<void>;
}

export interface DraftingOptions {
  readonly log: ServiceLog;
  /** Time limit for one draft, in ms. */
  readonly deadlineMs?: number;
}

/** Allows for a busy machine. */
const DEADLINE_MS = 30_000;

export function createDrafting({ log, deadlineMs = DEADLINE_MS }: DraftingOptions): DraftCompiler {
  const thread = new DraftingThread(deadlineMs);
  const turns = new FairSlots();
  const asked = async <K extends DraftTask['kind']>(
    task: DraftTask & { readonly kind: K },
    served: DraftBaseline,
    author: string,
  ): Promise<DraftTaskResults[K]> => {
    if (turns.isFull(author)) throw queryError('rateLimited', { retryAfterSeconds: 1 });
    try {
      const told = await turns.take(author, () =>
        thread.ask<DraftReply<DraftTaskResults[K]>>(task, keyOf(served), () => groundOf(served)),
      );
      if ('told' in told) return told.told;
      const { entry, message, ...fields } = told.error;
      throw new QueryError(entry as ErrorName, message, fields); // as the thread caught it
    } catch (error) {
      if (!(error instanceof DraftingEnded)) throw error;
      log.error('a draft was not judged', { author, task: task.kind, reason: error.message });
      throw toldOf(error, deadlineMs);
    }
  };
  const drafting: DraftCompiler = {
    judge: (proposal, served, author) => asked({ kind: 'judge', proposal }, served, author),
    workOut: (step, served, author) => asked({ kind: 'step', step }, served, author),
    suggestRelation: (candidate, served, author) => asked({ kind: 'relation', candidate }, served, author),
    suggestTerm: (term, served, author) => asked({ kind: 'term', term }, served, author),
    close: () => thread.close(),
  };
  return Object.freeze(drafting);
}

function keyOf({ manifest, snapshot, objects }: DraftBaseline): string {
  return `${manifest.version} ${snapshot?.version ?? ''} ${numberOf(objects)}`;
}

/** Publications never change, so each object gets a number. */
const NUMBERS = new WeakMap<FragmentDocument, number>();
let numbers = 0;

function numberOf(objects: FragmentDocument): number {
  const known = NUMBERS.get(objects) ?? ++numbers;
  NUMBERS.set(objects, known);
  return known;
}

function groundOf({ manifest, snapshot, base, objects }: DraftBaseline): BaselineMessage {
  const policy = snapshot?.document ?? null;
  return { kind: 'ground', version: manifest.version, base, objects, policy };
}

function toldOf({ why, message }: DraftingEnded, deadlineMs: number): Error {
  switch (why) {
    case 'late':
      return queryError('draftTooCostly', { what: `it takes more than ${deadlineMs} ms` });
    case 'memory':
      return queryError('draftTooCostly', { what: 'it needs more memory than a draft may' });
    case 'failed':
      return new InternalError(message);
    default: {
      const unknown: never = why;
      return unknown;
    }
  }
}
