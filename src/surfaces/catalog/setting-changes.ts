/** The SQLSTATE of the notices by which a catalog engine tells what `set_config` was asked for. No Postgres uses it. */
export const SETTING_CHANGED = 'OSL01';

/** What a statement wants set by `set_config`; a null value resets it. */
export interface SettingChange {
  readonly name: string;
  readonly value: string | null;
  /** Until the transaction ends. */
  readonly local: boolean;
}

interface SettingNotice {
  readonly sqlstate: string;
  readonly message: string;
}

/** The change that `notice` tells of, or null for a notice that is meant for the client. */
export function settingChange({ sqlstate, message }: SettingNotice): SettingChange | null {
  if (sqlstate !== SETTING_CHANGED) return null;
  const [name, value, local] = JSON.parse(message) as [string, string | null, boolean]; // made by our own function
  return { name, value, local };
}
