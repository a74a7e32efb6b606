export interface InitFlags {
  readonly url?: string;
  readonly urlEnv?: string;
  readonly urlFile?: string;
  readonly schemas?: readonly string[];
  readonly tables?: string;
  readonly key: readonly string[];
  readonly mask?: string;
  readonly clear?: string;
  readonly rows?: string;
  readonly others?: 'whole' | 'hidden';
  readonly tenant?: string;
  readonly role?: string;
  readonly subject?: string;
  readonly issuerKey?: string;
  readonly createRole?: string;
  readonly bi?: boolean;
  readonly rowSecurity?: true;
  readonly yes?: true;
  readonly force?: true;
  readonly json?: true;
}

export const DEFAULT_URL_ENV = 'DATABASE_URL';
