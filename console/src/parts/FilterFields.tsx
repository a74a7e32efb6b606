import './parts.css';

interface FieldProps {
  readonly title: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly size?: 'narrow' | 'usual' | 'wide';
}

interface TextFieldProps extends FieldProps {
  /** Shown while the field is empty. */
  readonly hint: string;
}

export function TextField({ title, value, onChange, size = 'usual', hint }: TextFieldProps) {
  return (
    <label className={`bar-field bar-${size}`}>
      <span>{title}</span>
      <input
        type="search"
        value={value}
        placeholder={hint}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}

interface SelectFieldProps<T extends string> extends Omit<FieldProps, 'onChange'> {
  /** Values in display order, each with its label. */
  readonly options: readonly (readonly [value: T, words: string])[];
  readonly onChange: (value: T) => void;
}

export function SelectField<T extends string>(props: SelectFieldProps<T>) {
  const { title, value, onChange, size = 'usual', options } = props;
  return (
    <label className={`bar-field bar-${size}`}>
      <span>{title}</span>
      <select
        value={value}
        onChange={(event) => {
          const chosen = options.find(([one]) => one === event.target.value);
          if (chosen !== undefined) onChange(chosen[0]);
        }}
      >
        {options.map(([one, words]) => (
          <option key={one} value={one}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}
