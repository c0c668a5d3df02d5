import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

interface Props {
  icon: LucideIcon;
  title: string;
  children?: ReactNode;
}

/** What stands where there is nothing to show: why, and what to do about it. */
export function Blank({ icon: Icon, title, children }: Props) {
  return (
    <div className="blank">
      <Icon aria-hidden="true" size={24} strokeWidth={1.5} />
      <p className="blank-title">{title}</p>
      {children}
    </div>
  );
}
