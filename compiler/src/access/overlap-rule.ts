/** Answers are compared with those of `days` days, of each subject or of all members of the group `with`. */
export interface OverlapRule {
  readonly days: number;
  readonly with: string | null;
}
