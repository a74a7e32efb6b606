/** A part of a running server that can be reloaded. */
export interface ReloadPart {
  /** Reads and checks it, without side effects. */
  prepare(): ReloadStep | Promise<ReloadStep>;
}

export interface ReloadStep {
  /** Summary of what will be in force. */
  readonly now: string | null;
  /** Changes that need a restart, with advice. */
  readonly kept: string | null;
  /** Applies it. Must not throw. */
  take(): void;
}

export interface ReloadResult {
  readonly now: readonly string[];
  readonly kept: readonly string[];
}

/** Prepares all parts before any is applied; returns a function that applies them. */
export async function prepareAll(parts: readonly ReloadPart[]): Promise<() => ReloadResult> {
  const steps: ReloadStep[] = [];
  for (const part of parts) steps.push(await part.prepare());
  return () => {
    for (const step of steps) step.take();
    const told = (of: 'now' | 'kept') => steps.flatMap((step) => step[of] ?? []);
    return Object.freeze({ now: told('now'), kept: told('kept') });
  };
}

/** A prepared change, which every process of a server applies, or none. */
export interface PreparedChange {
  take(): Promise<ReloadResult>;
  /** Discards the change. */
  drop(): Promise<void>;
}
