/** One thing that a running server reads anew. */
export interface ReloadPart {
  /** Reads and checks it; nothing has changed when it throws. */
  prepare(): ReloadStep | Promise<ReloadStep>;
}

export interface ReloadStep {
  /** What is in force once this is taken up, in a few words. */
  readonly now: string | null;
  /** What was found changed and stays as it was, with what to do. */
  readonly kept: string | null;
  /** Takes up what was read. Must not throw. */
  take(): void;
}

/** What a reload came to. */
export interface ReloadResult {
  readonly now: readonly string[];
  readonly kept: readonly string[];
}

/** Reads and checks every part before any is taken up: all or none. Gives what takes them up. */
export async function prepareAll(parts: readonly ReloadPart[]): Promise<() => ReloadResult> {
  const steps: ReloadStep[] = [];
  for (const part of parts) steps.push(await part.prepare());
  return () => {
    for (const step of steps) step.take();
    const told = (of: 'now' | 'kept') => steps.flatMap((step) => step[of] ?? []);
    return Object.freeze({ now: told('now'), kept: told('kept') });
  };
}

/** A change that was read and checked and is not in force: every process of a server takes it up, or none. */
export interface PreparedChange {
  take(): Promise<ReloadResult>;
  /** What served before goes on. */
  drop(): Promise<void>;
}
